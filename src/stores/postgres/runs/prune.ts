import type { PruneOptions, PruneReport } from "../../../ports/run-store.ts";
import type { PostgresDatabase } from "../driver/driver.ts";
import { RUNS_SCHEMA } from "./schema.ts";
import { deleteSql, MARK_DELETED, MAY_DELETE_RUN, PRUNABLE } from "./sql.ts";

const BATCH = 500;
const PAGE = 1_000;

/** Removes in small transactions, so that runs can save in between. */
export async function prunePostgresRuns(database: PostgresDatabase, options: PruneOptions): Promise<PruneReport> {
  const { olderThan, keepLast, runId, batch = BATCH, signal } = options;
  const report = { checkpoints: 0, runs: 0, bytes: 0 };

  for await (const id of runId === undefined ? runIds(database) : [runId]) {
    for (let more = true; more; ) {
      signal?.throwIfAborted();
      const removed = await database.write(
        RUNS_SCHEMA,
        async (tx) => {
          const wholeRun = olderThan !== undefined && !keepLast && (await tx.get(MAY_DELETE_RUN, id, olderThan)) !== undefined;
          const deleted = wholeRun
            ? await tx.get<Deleted>(deleteSql("SELECT sequence FROM runs.checkpoints WHERE run_id = $1::text LIMIT $2::integer"), id, batch)
            : await tx.get<Deleted>(deleteSql(PRUNABLE), id, olderThan ?? "infinity", keepLast ?? 0, batch);
          const last = deleted!.n < batch;
          const runDeleted = wholeRun && last && (await tx.run(MARK_DELETED, id)) > 0;
          return { ...deleted!, last, runDeleted };
        },
        { idempotent: true },
      );
      report.checkpoints += removed.n;
      report.bytes += removed.bytes;
      if (removed.runDeleted) report.runs++;
      more = !removed.last;
    }
  }
  return report;
}

interface Deleted {
  n: number;
  bytes: number;
}

/** All runs, a page at a time, so that a million of them need little memory. */
async function* runIds(database: PostgresDatabase): AsyncGenerator<string> {
  for (let after = ""; ; ) {
    const page = await database.statement<{ run_id: string }>(
      "SELECT run_id FROM runs.runs WHERE run_id > $1 AND NOT deleted ORDER BY run_id LIMIT $2",
      [after, PAGE],
      { idempotent: true },
    );
    for (const { run_id } of page) yield run_id;
    if (page.length < PAGE) return;
    after = page.at(-1)!.run_id;
  }
}
