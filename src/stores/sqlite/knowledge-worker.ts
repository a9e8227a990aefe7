import { parentPort, workerData } from "node:worker_threads";
import { asCairnError } from "../../model/errors.ts";
import type { KnowledgeBatch } from "../../ports/knowledge-store.ts";
import { openSqlite } from "./driver.ts";
import { applyBatch } from "./knowledge.ts";

/** A thread of its own, because a large batch is one transaction that takes a second or more. */
const { path, batch } = workerData as { path: string; batch: KnowledgeBatch };
try {
  const database = await openSqlite({ path, mustExist: true });
  try {
    parentPort!.postMessage({ outcome: await database.write((tx) => applyBatch(tx, batch)) });
  } finally {
    database.close();
  }
} catch (error) {
  const { code, message, details, retryAfterMs } = asCairnError(error);
  parentPort!.postMessage({ failure: { code, message, details, retryAfterMs } });
}
