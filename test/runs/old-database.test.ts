import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, expect, it } from "vitest";
import { END, graph } from "../../src/runs.ts";
import { openSqlite } from "../../src/stores/sqlite/driver/driver.ts";
import { runMigrations } from "../../src/stores/sqlite/runs/schema.ts";
import { sqliteRunStore } from "../../src/stores/sqlite/runs/store.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-old-runs-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const AT = "2026-01-02T03:04:05.678Z";
const LARGE = JSON.stringify({ n: 2, text: "long ".repeat(300_000) });
const STEPS = 5;

/** A database as the first step of the schema left it, with a run that was killed on its way. */
async function madeByFirstStep(path: string, fingerprint: string): Promise<void> {
  const database = await openSqlite({ path, migrations: runMigrations.slice(0, 1) });
  await database.write((tx) => {
    tx.run(
      `INSERT INTO runs (run_id, graph, fingerprint, last_sequence, fence, lease_owner, lease_until, created_at, updated_at)
       VALUES ('old', 'count', ?, 4, 1, 'gone', ?, ?, ?)`,
      fingerprint,
      ...[AT, AT, AT],
    );
    const save = (sequence: number, node: string, next: string | null, kind: string, note: string | null, state: string, gzip = false) =>
      tx.run(
        `INSERT INTO checkpoints (run_id, node_id, sequence, timestamp, version, next_node, previous_node, attempt, branch, step, kind, note, size, encoding, data)
         VALUES ('old', ?, ?, ?, 1, ?, NULL, 1, '', ?, ?, ?, ?, ?, ?)`,
        ...[node, sequence, AT, next, sequence - 1, kind, note, Buffer.byteLength(state), gzip ? "gzip" : "raw"],
        gzip ? gzipSync(state) : Buffer.from(state),
      );
    save(1, "__start__", "add", "start", null, '{"n":0,"text":"Ünïcode ☃"}');
    save(2, "add", "add", "node", '{"said":"\\"quoted\\"\\n"}', '{"n":1,"text":"Ünïcode ☃"}');
    // Number 3 was pruned.
    save(4, "add", "add", "node", null, LARGE, true);
  });
  database.close();
}

const count = graph<{ readonly n: number; readonly text: string }>({ name: "count" })
  .node("add", ({ n, text }) => ({ n: n + 1, text }))
  .branch("add", ({ n }) => (n < STEPS ? "add" : END), ["add", END])
  .entry("add")
  .compile();

it("opens a database of runs made by the first version of its schema, shows all of it and goes on with the run", async () => {
  const path = join(folder, "runs.db");
  await madeByFirstStep(path, count.fingerprint);
  const store = sqliteRunStore({ path });

  expect((await store.history("old", { limit: 10 })).map(({ sequence }) => sequence)).toEqual([4, 2, 1]);
  expect((await store.list("old")).map(({ sequence, nodeId }) => [sequence, nodeId])).toEqual([
    [1, "__start__"],
    [4, "add"],
  ]);
  const { state, ...second } = await store.loadAt("old", 2);
  expect(Buffer.from(state).toString()).toBe('{"n":1,"text":"Ünïcode ☃"}');
  expect(second).toEqual({
    ...{ version: 1, runId: "old", nodeId: "add", sequence: 2, timestamp: AT, size: 30, nextNode: "add", previousNode: null },
    ...{ attempt: 1, branch: "", step: 1, kind: "node", note: '{"said":"\\"quoted\\"\\n"}' },
  });
  expect(Buffer.from((await store.load("old", "add")).state).toString() === LARGE).toBe(true);

  const done = await count.resume("old", { store });
  expect(done).toMatchObject({ status: "completed", state: { n: STEPS } });
  expect((await store.getRun("old"))?.lastSequence).toBe(4 + STEPS - 2);
  const { checkpoints } = await store.prune({ keepLast: 1 });
  expect(checkpoints).toBeGreaterThan(0);
  await store.close();

  const again = sqliteRunStore({ path });
  expect((await again.load("old", "add")).sequence).toBe(7);
  await again.close();
});
