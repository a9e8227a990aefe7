import { workerData } from "node:worker_threads";
import { postResult } from "../../../../scheduling/run-in-thread.ts";
import { openSqlite } from "../../driver/driver.ts";
import { type CommitOrder, commitBatch } from "./commit.ts";

/** Commits one large batch for the main thread, whose event loop it would block. */
const { path, projectId, batch } = workerData as CommitOrder;
await postResult(async () => {
  const database = await openSqlite({ path, mustExist: true });
  try {
    return await commitBatch(database, projectId, batch);
  } finally {
    database.close();
  }
});
