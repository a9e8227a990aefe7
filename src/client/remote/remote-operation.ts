import type { Operation } from "../../operations/operation.ts";
import { toCamel, toWire } from "../../operations/wire.ts";
import type { ApiClient } from "./api-client.ts";

/** Returns the operation with a `run` that calls a server. The input is validated here as well, and the output again. */
export function remoteOperation(operation: Operation, client: ApiClient): Operation {
  return {
    ...operation,
    async run(_cairn, input, { signal }) {
      const wire = toWire(operation.input, input) as Record<string, unknown>;
      const output = await client.call(operation, wire, signal);
      return toCamel(operation.output, operation.output.parse(output));
    },
  };
}
