import { parentPort } from "node:worker_threads";
import { postResult } from "../../../../scheduling/run-in-thread.ts";
import { openSqlite } from "../../driver/driver.ts";
import { type CommitOrder, commitBatch } from "./commit.ts";

/** Commits large batches for the main thread, whose event loop they would block. The file is open only during a commit. */
parentPort!.on("message", ({ path, projectId, batch }: CommitOrder) =>
  postResult(async () => {
    const database = await openSqlite({ path, mustExist: true });
    try {
      return await commitBatch(database, projectId, batch);
    } finally {
      database.close();
    }
  }),
);
