import { statSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { builtFile } from "../../../files/built-file.ts";
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
  const worker = new Worker(builtFile("stores/sqlite/driver/vacuum-worker.js"), { workerData: order, execArgv: [] });
  try {
    await new Promise<void>((resolve, reject) => {
      worker.once("message", () => resolve());
      worker.once("error", reject);
      worker.once("exit", () => reject(new Error("Making the file smaller ended without a result.")));
    });
  } catch (error) {
    throw translateSqliteError(error, order.path);
  } finally {
    await worker.terminate();
  }
  // While somebody reads an older state, what was written stays in the log beside the file, and the file shrinks later.
  return Math.max(0, before - sizeOf(order.path));
}

function sizeOf(path: string): number {
  return ["", "-wal"].reduce((sum, end) => sum + (statSync(path + end, { throwIfNoEntry: false })?.size ?? 0), 0);
}
