import { parentPort, workerData } from "node:worker_threads";
import { loadEngine } from "./engine.ts";
import type { VacuumOrder } from "./vacuum.ts";

/** A thread of its own, because the whole file is written anew. What is gathered meanwhile goes to a file, not into memory. */
const { path, lockWaitMs } = workerData as VacuumOrder;
const { DatabaseSync } = await loadEngine();
const connection = new DatabaseSync(path, { timeout: lockWaitMs });
try {
  connection.exec("PRAGMA synchronous = FULL; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)");
} finally {
  connection.close();
}
parentPort!.postMessage("done");
