import { localOperations } from "../local/operations.ts";
import type { Operation } from "../operation.ts";

/** The operations of an edge beside the files: all that a server has, and those that read the disk. */
export function edgeOperations(operations: readonly Operation[]): readonly Operation[] {
  return [...operations, ...localOperations];
}
