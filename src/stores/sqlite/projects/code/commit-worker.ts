import { parentPort } from "node:worker_threads";
import { postResult, settleAll } from "../../../../scheduling/run-in-thread.ts";
import { isSameFile } from "../../driver/databases.ts";
import { inodeOf, openSqlite, type SqliteDatabase } from "../../driver/driver.ts";
import { type CommitOrder, writeBatch } from "./commit.ts";

/**
 * Milliseconds that a file stays open for the next batches: opening it takes as long as a small batch. Not longer, because a restore and
 * a deletion of the index wait for it.
 */
const OPEN_MS = 100;

let opened: { readonly database: SqliteDatabase; readonly inode: number | undefined } | undefined;
let closing: NodeJS.Timeout | undefined;

async function open(path: string): Promise<SqliteDatabase> {
  clearTimeout(closing);
  if (opened && (opened.database.path !== path || !isSameFile(path, opened.inode))) close();
  opened ??= { database: await openSqlite({ path, mustExist: true, keepLog: true }), inode: inodeOf(path) };
  return opened.database;
}

function close(): void {
  opened?.database.close();
  opened = undefined;
}

/**
 * Commits large batches for the main thread, whose event loop they would block. The batches of one order are queued together, so that
 * they share one transaction; each succeeds or fails alone.
 */
parentPort!.on("message", ({ path, projectId, batches }: CommitOrder) =>
  postResult(async () => {
    const database = await open(path);
    const results = await settleAll(batches.map((batch) => writeBatch(database, projectId, batch)));
    if (results.some((result) => "failure" in result)) close(); // the next batch may meet a file that was repaired
    closing = setTimeout(close, OPEN_MS);
    return results;
  }),
);
