import { statSync } from "node:fs";
import { runInThread } from "../../../scheduling/run-in-thread.ts";
import { translateSqliteError } from "./errors.ts";

export interface VacuumOrder {
  readonly path: string;
  readonly lockWaitMs: number;
}

/**
 * Writes the file anew without its empty pages, in a thread, and says how many bytes it is smaller. Others read on meanwhile, and
 * write afterwards. It needs as much free room on the disk as the file takes.
 */
export async function vacuumFile(order: VacuumOrder): Promise<number> {
  const before = sizeOf(order.path);
  await runInThread("stores/sqlite/driver/vacuum-worker.js", order).catch((error) => {
    throw translateSqliteError(error, order.path);
  });
  // While somebody reads an older state, what was written stays in the log beside the file, and the file shrinks later.
  return Math.max(0, before - sizeOf(order.path));
}

function sizeOf(path: string): number {
  return ["", "-wal"].reduce((sum, end) => sum + (statSync(path + end, { throwIfNoEntry: false })?.size ?? 0), 0);
}
