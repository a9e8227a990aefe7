import type { PruneOptions, PruneReport } from "../../../ports/run-store.ts";
import type { SqliteDatabase, SqliteTx } from "../driver/driver.ts";
import { MARK_DELETED } from "./schema.ts";

const BATCH = 500;

/** Removes in small transactions, so that runs can save in between. */
export async function pruneSqliteRuns(database: SqliteDatabase, options: PruneOptions): Promise<PruneReport> {
  const { olderThan, keepLast, runId, batch = BATCH, signal } = options;
  const report = { checkpoints: 0, runs: 0, bytes: 0 };

  for (const id of runId === undefined ? runIds(database) : [runId]) {
    for (let more = true; more; ) {
      signal?.throwIfAborted();
      const removed = await database.write((tx) => {
        const wholeRun = olderThan !== undefined && !keepLast && tx.get(MAY_DELETE_RUN, id, olderThan) !== undefined;
        const rows = wholeRun
          ? tx.all<Removable>("SELECT rowid AS key, octet_length(data) AS bytes FROM checkpoints WHERE run_id = ? LIMIT ?", id, batch)
          : tx.all<Removable>(PRUNABLE, id, olderThan ?? AFTER_ALL_TIMES, keepLast ?? 0, batch);
        remove(tx, rows);
        const last = rows.length < batch;
        const runDeleted = wholeRun && last && tx.run(MARK_DELETED, id).changes > 0;
        return { rows, last, runDeleted };
      });
      report.checkpoints += removed.rows.length;
      for (const { bytes } of removed.rows) report.bytes += bytes;
      if (removed.runDeleted) report.runs++;
      more = !removed.last;
    }
  }
  if (report.checkpoints + report.runs > 0) await database.eraseLog();
  return report;
}

interface Removable {
  key: number;
  bytes: number;
}

/** Sorts after every time. */
const AFTER_ALL_TIMES = "~";

const MAY_DELETE_RUN = `SELECT 1 FROM runs WHERE run_id = ? AND deleted = 0 AND updated_at < ?
  AND (graph = '' OR status IN ('completed', 'failed', 'cancelled'))`;

/** What retention removes of one run: see \`selectPrunable\` in model/run-rules.ts, which has the same rule in TypeScript. */
const PRUNABLE = `SELECT rowid AS key, octet_length(data) AS bytes FROM checkpoints AS old
  WHERE run_id = ?1 AND timestamp < ?2
    AND sequence <= coalesce((SELECT sequence FROM checkpoints WHERE run_id = ?1 ORDER BY sequence DESC LIMIT 1 OFFSET ?3), 0)
    AND EXISTS (SELECT 1 FROM checkpoints AS newer WHERE newer.run_id = ?1 AND newer.node_id = old.node_id AND newer.sequence > old.sequence)
    AND (EXISTS (SELECT 1 FROM runs WHERE run_id = ?1 AND (graph = '' OR status IN ('completed', 'failed', 'cancelled')))
      OR sequence < coalesce((SELECT sequence FROM checkpoints WHERE run_id = ?1 AND branch = '' ORDER BY sequence DESC LIMIT 1), 0))
  LIMIT ?4`;

function remove(tx: SqliteTx, rows: readonly Removable[]): void {
  for (const { key } of rows) tx.run("DELETE FROM checkpoints WHERE rowid = ?", key);
}

/** All runs, a page at a time, so that a million of them need little memory. */
function* runIds(database: SqliteDatabase): Generator<string> {
  for (let after = ""; ; ) {
    const page = database.read((tx) =>
      tx.all<{ run_id: string }>("SELECT run_id FROM runs WHERE run_id > ? AND deleted = 0 ORDER BY run_id LIMIT 1000", after),
    );
    for (const { run_id } of page) yield run_id;
    if (page.length < 1000) return;
    after = page.at(-1)!.run_id;
  }
}
