import type { Operation } from "../operations/operation.ts";
import { type ClientSide, decorateServed } from "./decorate-served.ts";
import { clientOperations } from "./jobs/operations.ts";

/**
 * Returns the operations of the client side: those of a server, decorated, and the client operations, which read the disk. A client
 * operation replaces the server operation of the same name: `code_cancel` cancels the index job of this machine.
 */
export function decorateOperations(operations: readonly Operation[], clientSide?: ClientSide): readonly Operation[] {
  const own = new Set(clientOperations.map(({ name }) => name));
  return decorateServed([...operations.filter(({ name }) => !own.has(name)), ...clientOperations], clientSide);
}
