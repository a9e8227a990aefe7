import { parentPort } from "node:worker_threads";
import { postResult } from "../../../../scheduling/run-in-thread.ts";
import { isSameFile } from "../../driver/databases.ts";
import { inodeOf, openSqlite, type SqliteDatabase } from "../../driver/driver.ts";
import { type CommitOrder, commitBatch } from "./commit.ts";

/**
 * Milliseconds that a file stays open for the next batch: opening it, and emptying its log when it is closed, takes as long as a small
 * batch. Not longer, because a restore and a deletion of the index wait for it.
 */
const OPEN_MS = 100;

let opened: { readonly database: SqliteDatabase; readonly inode: number | undefined } | undefined;
let closing: NodeJS.Timeout | undefined;

async function open(path: string): Promise<SqliteDatabase> {
  clearTimeout(closing);
  if (opened && (opened.database.path !== path || !isSameFile(path, opened.inode))) close();
  opened ??= { database: await openSqlite({ path, mustExist: true }), inode: inodeOf(path) };
  return opened.database;
}

function close(): void {
  opened?.database.close();
  opened = undefined;
}

/** Commits large batches for the main thread, whose event loop they would block. Orders come one after the other. */
parentPort!.on("message", ({ path, projectId, batch }: CommitOrder) =>
  postResult(async () => {
    const database = await open(path);
    try {
      return await commitBatch(database, projectId, batch);
    } catch (error) {
      close(); // the next batch may meet a file that was repaired
      throw error;
    } finally {
      closing = setTimeout(close, OPEN_MS);
    }
  }),
);
