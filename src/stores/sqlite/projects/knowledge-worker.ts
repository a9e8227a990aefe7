import { workerData } from "node:worker_threads";
import type { KnowledgeBatch } from "../../../ports/knowledge-store.ts";
import { postResult } from "../../../scheduling/run-in-thread.ts";
import { openSqlite } from "../driver/driver.ts";
import { applyBatch } from "./knowledge.ts";

/** A thread of its own, because a large batch is one transaction that takes a second or more. */
const { path, batch } = workerData as { path: string; batch: KnowledgeBatch };
await postResult(async () => {
  const database = await openSqlite({ path, mustExist: true });
  try {
    return await database.write((tx) => applyBatch(tx, batch));
  } finally {
    database.close();
  }
});
