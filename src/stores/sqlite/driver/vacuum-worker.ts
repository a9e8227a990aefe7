import { workerData } from "node:worker_threads";
import { postResult } from "../../../scheduling/run-in-thread.ts";
import { loadEngine } from "./engine.ts";
import type { VacuumOrder } from "./vacuum.ts";

/** Runs in a thread, because VACUUM writes the whole file again. Its temporary data goes to a file, not into memory. */
const { path, lockWaitMs } = workerData as VacuumOrder;
await postResult(async () => {
  const { DatabaseSync } = await loadEngine();
  const connection = new DatabaseSync(path, { timeout: lockWaitMs });
  try {
    connection.exec("PRAGMA synchronous = FULL; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)");
  } finally {
    connection.close();
  }
});
