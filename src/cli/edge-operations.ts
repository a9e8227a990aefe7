import { localOperations } from "../local/operations.ts";
import { withStaleness } from "../local/staleness.ts";
import type { Operation } from "../operation.ts";

/** The operations of an edge beside the files: all that a server has, knowing of the files as they are now, and those that read the disk. */
export function edgeOperations(operations: readonly Operation[]): readonly Operation[] {
  return [...operations.map(withStaleness), ...localOperations];
}
