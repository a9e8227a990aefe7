import { statSync } from "node:fs";
import { runInThread } from "../../../scheduling/run-in-thread.ts";
import { translateSqliteError } from "./errors.ts";

export interface VacuumOrder {
  readonly path: string;
  readonly lockWaitMs: number;
}

/**
 * Rewrites the file without its empty pages, in a thread, and returns by how many bytes it became smaller. Other connections can read
 * meanwhile, and write afterwards. It needs as much free disk space as the file takes.
 */
export async function vacuumFile(order: VacuumOrder): Promise<number> {
  const before = sizeOf(order.path);
  await runInThread("stores/sqlite/driver/vacuum-worker.js", order).catch((error) => {
    throw translateSqliteError(error, order.path);
  });
  // While a reader uses an older snapshot, the result stays in the write-ahead log and the file shrinks later.
  return Math.max(0, before - sizeOf(order.path));
}

function sizeOf(path: string): number {
  return ["", "-wal"].reduce((sum, end) => sum + (statSync(path + end, { throwIfNoEntry: false })?.size ?? 0), 0);
}
