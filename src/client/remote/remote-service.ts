import { CairnError } from "../../model/errors.ts";
import type { Operation } from "../../operations/operation.ts";
import { toCamel, toWire } from "../../operations/wire.ts";
import type { ApiClient } from "./api-client.ts";

/** A service whose work a server does: `list` of `checkpoint` is the operation `checkpoint_list`. What has no operation is not there. */
export function remoteService<Service extends object>(noun: string, operations: readonly Operation[], client: ApiClient): Service {
  const verb = (name: string) => async (input: unknown, options?: { readonly signal?: AbortSignal | undefined }) => {
    const operation = operations.find((one) => one.name === `${noun}_${name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`);
    if (!operation) throw new CairnError("unavailable", `This cannot be done over api.url. Do it on the server's machine.`);
    const output = await client.call(operation, toWire(operation.input, input) as Record<string, unknown>, options?.signal);
    return toCamel(operation.output, operation.output.parse(output));
  };
  // A promise would be asked for its `then`.
  return new Proxy({}, { get: (_, name) => (typeof name === "string" && name !== "then" ? verb(name) : undefined) }) as Service;
}
