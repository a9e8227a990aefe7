import type { Operation } from "../../operations/operation.ts";
import { camelKey, toCamel, toWire } from "../../operations/wire.ts";
import type { ApiClient } from "./api-client.ts";

/** Returns a service whose calls a server performs: `list` of `checkpoint` is the operation `checkpoint_list`. It has one function per operation. */
export function remoteService<Service extends object>(noun: string, operations: readonly Operation[], client: ApiClient): Partial<Service> {
  const own = operations.filter(({ name }) => name.startsWith(`${noun}_`));
  return Object.fromEntries(
    own.map((operation) => [camelKey(operation.name.slice(noun.length + 1)), remoteCall(operation, client)]),
  ) as Partial<Service>;
}

function remoteCall(operation: Operation, client: ApiClient) {
  return async (input: unknown, options?: { readonly signal?: AbortSignal | undefined }) => {
    const output = await client.call(operation, toWire(operation.input, input) as Record<string, unknown>, options?.signal);
    return toCamel(operation.output, operation.output.parse(output));
  };
}
