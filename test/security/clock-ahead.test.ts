import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { systemClock } from "../../src/model/ids.ts";
import { orderTime } from "../../src/model/record-order.ts";
import type { CheckpointStore } from "../../src/ports/checkpoint-store.ts";
import type { Storage } from "../../src/ports/storage.ts";
import { memoryStorage } from "../../src/stores/memory/storage.ts";
import { postgresStorage } from "../../src/stores/postgres/storage.ts";
import { sqliteStorage } from "../../src/stores/sqlite/storage.ts";
import { freshProject, sampleCheckpoint } from "../../src/testing/checkpoint-samples.ts";
import { sampleKnowledge } from "../../src/testing/knowledge-contract.ts";
import { postgresWanted, type TestDatabase, testDatabase } from "../setup/postgres.ts";

const YEAR_MS = 365 * 24 * 3_600_000;
const START = Date.parse("2026-11-16T12:00:00.000Z");
const iso = (ms: number) => new Date(ms).toISOString();

const dataDir = mkdtempSync(join(tmpdir(), "cairn-clock-"));
const kinds = ["memory", "sqlite", ...(postgresWanted ? ["postgres"] : [])];
const storages = new Map<string, Storage>();
let database: TestDatabase | undefined;

beforeAll(async () => {
  storages.set("memory", memoryStorage());
  storages.set("sqlite", sqliteStorage({ dataDir, now: systemClock }));
  if (!postgresWanted) return;
  database = await testDatabase();
  storages.set("postgres", postgresStorage({ url: database.url, now: systemClock }));
});
afterAll(async () => {
  for (const storage of storages.values()) await storage.close();
  await database?.drop();
  rmSync(dataDir, { recursive: true, force: true });
});

/** One step: a save under a clock that is ahead by some milliseconds, or an import of a record with its own time. */
type Step = { readonly type: "save"; readonly aheadMs: number } | { readonly type: "import"; readonly offsetMs: number };

const steps = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.record({ type: fc.constant("save" as const), aheadMs: fc.constant(0) }) },
    {
      weight: 2,
      arbitrary: fc.record({ type: fc.constant("save" as const), aheadMs: fc.integer({ min: 600_000, max: 10 * YEAR_MS }) }),
    },
    { weight: 1, arbitrary: fc.record({ type: fc.constant("import" as const), offsetMs: fc.integer({ min: -YEAR_MS, max: YEAR_MS }) }) },
  ),
  { minLength: 1, maxLength: 12 },
);

async function play(store: CheckpointStore, project: string, played: readonly Step[]): Promise<void> {
  for (const [index, step] of played.entries()) {
    const now = START + index * 10_000;
    if (step.type === "save") {
      const at = iso(now + step.aheadMs);
      await store.put(sampleCheckpoint(project, { id: `save-${index}`, createdAt: at, updatedAt: at }), [], { savedAt: at });
    } else {
      const [at, order] = [iso(now + step.offsetMs), orderTime(iso(now + step.offsetMs), iso(now))];
      const times = { createdAt: at, updatedAt: at, createdOrder: order, updatedOrder: order };
      await store.put(sampleCheckpoint(project, { id: `import-${index}`, ...times }));
    }
  }
}

const numberOf = (id: string) => Number(id.split("-")[1]);
const whole = { limit: 100, offset: 0 } as const;

describe.each(kinds)("a clock that is ahead, on %s", (kind) => {
  it("lists saves in the order in which they were made, however often the clock was wrong, and pages never skip or repeat", async () => {
    await fc.assert(
      fc.asyncProperty(steps, fc.integer({ min: 1, max: 4 }), async (played, limit) => {
        const project = freshProject();
        const { checkpoints: store } = await storages.get(kind)!.create(project);
        await play(store, project, played);
        for (const sortBy of ["created_at", "updated_at"] as const) {
          const { checkpoints, total } = await store.list({ ...whole, sortBy });
          expect(total).toBe(played.length);
          const saves = checkpoints.map(({ id }) => id).filter((id) => id.startsWith("save"));
          expect(saves).toEqual(saves.toSorted((a, b) => numberOf(b) - numberOf(a)));
          const paged: string[] = [];
          for (let after: { at: string; id: string } | undefined; ; ) {
            const page = await store.list({ limit, offset: 0, sortBy, after });
            paged.push(...page.checkpoints.map(({ id }) => id));
            const last = page.checkpoints.at(-1);
            if (!last) break;
            after = { at: sortBy === "created_at" ? last.createdOrder : last.updatedOrder, id: last.id };
          }
          expect(paged).toEqual(checkpoints.map(({ id }) => id));
        }
      }),
      { numRuns: kind === "postgres" ? 8 : 40 },
    );
  }, 120_000);

  it("neither repeats nor skips a record when the clock is set right while a list is being read", async () => {
    const project = freshProject();
    const { checkpoints: store } = await storages.get(kind)!.create(project);
    const ahead = { type: "save", aheadMs: 10 * YEAR_MS } as const;
    const right = { type: "save", aheadMs: 0 } as const;
    await play(store, project, [right, right, ahead, ahead, ahead]);
    const first = await store.list({ limit: 2, offset: 0, sortBy: "created_at" });
    expect(first.checkpoints.map(({ id }) => id)).toEqual(["save-4", "save-3"]);
    const savedAt = iso(START + 60_000);
    await store.put(sampleCheckpoint(project, { id: "later", createdAt: savedAt, updatedAt: savedAt }), [], { savedAt });
    const last = first.checkpoints.at(-1)!;
    const rest = await store.list({ ...whole, sortBy: "created_at", after: { at: last.createdOrder, id: last.id } });
    expect(rest.checkpoints.map(({ id }) => id)).toEqual(["save-2", "save-1", "save-0"]);
    const all = await store.list({ ...whole, sortBy: "created_at" });
    expect(all.checkpoints.map(({ id }) => id)).toEqual(["later", "save-4", "save-3", "save-2", "save-1", "save-0"]);
    expect(all.checkpoints[1]!.createdAt).toBe(iso(START + 40_000 + 10 * YEAR_MS));
  });

  it("changes no order for clocks that differ by seconds, so that overlapping saves stay in the order of their times", async () => {
    const project = freshProject();
    const { checkpoints: store } = await storages.get(kind)!.create(project);
    for (const [id, offset] of [["quick", 5_000] as const, ["slow", 0] as const]) {
      const at = iso(START + offset);
      await store.put(sampleCheckpoint(project, { id, createdAt: at, updatedAt: at }), [], { savedAt: at });
    }
    expect((await store.list({ ...whole, sortBy: "created_at" })).checkpoints.map(({ id }) => id)).toEqual(["quick", "slow"]);
  });

  it("orders knowledge by the same rule", async () => {
    const { knowledge: store } = await storages.get(kind)!.create(freshProject());
    for (const [id, offset] of [
      ["before", 0],
      ["ahead", 10 * YEAR_MS],
      ["after", 10_000],
    ] as const) {
      const at = iso(START + offset);
      await store.put(sampleKnowledge({ id, createdAt: at, updatedAt: at }), [], { savedAt: at });
    }
    expect((await store.list({ limit: 10 })).records.map(({ id }) => id)).toEqual(["after", "ahead", "before"]);
    const at = iso(START + 20_000);
    const record = sampleKnowledge({ id: "imported", createdAt: at, updatedAt: at });
    expect(await store.apply({ add: [{ record }], replace: [], remove: [], savedAt: at })).toBe("applied");
    expect((await store.list({ limit: 1 })).records[0]!.id).toBe("imported");
  });
});

describe.each(["memory", "sqlite"])("Cairn with a clock that was ten years ahead, on %s", (storage) => {
  it("resumes from the latest save, prunes by the corrected age, and ranks equal hits by insertion", async () => {
    const folder = mkdtempSync(join(tmpdir(), "cairn-clock-"));
    let time = START;
    const cairn = await open({ storage, dataDir: folder, embedder: { kind: "none" }, now: () => iso(time) });
    const projectPath = "/home/someone/clock";
    const save = async (at: number) => {
      time = at;
      return (await cairn.checkpoints.save({ projectPath, summary: "the same words" })).id;
    };
    const old = await save(START);
    const ahead = await save(START + 10 * YEAR_MS);
    expect((await cairn.checkpoints.resume({ projectPath })).checkpoint.id).toBe(ahead);
    const latest = await save(START + 30_000);
    expect((await cairn.checkpoints.resume({ projectPath })).checkpoint).toMatchObject({ id: latest });
    const { hits } = await cairn.checkpoints.search({ projectPath, query: "same words" });
    expect(hits.map(({ record }) => record.id)).toEqual([latest, ahead, old]);
    expect((await cairn.checkpoints.list({ projectPath, createdFrom: iso(START + 60_000) })).total).toBe(0);
    // Imported records keep their times; one from the future is placed at the time of the import.
    time = START + 40_000;
    await cairn.checkpoints.import({
      projectPath,
      records: [
        { id: "future", summary: "from a clock ahead", created_at: iso(START + 20 * YEAR_MS) },
        { id: "past", summary: "from last year", created_at: iso(START - YEAR_MS) },
      ],
    });
    const newest = await save(START + 50_000);
    const { checkpoints } = await cairn.checkpoints.list({ projectPath });
    expect(checkpoints.map(({ id }) => id)).toEqual([newest, "future", latest, ahead, old, "past"]);
    expect(checkpoints[1]!.createdAt).toBe(iso(START + 20 * YEAR_MS));
    const pruned = await cairn.checkpoints.prune({ projectPath, createdBefore: iso(START + 35_000), keepLast: 2 });
    expect(pruned).toMatchObject({ matched: 4, deleted: 4 });
    expect((await cairn.checkpoints.list({ projectPath })).checkpoints.map(({ id }) => id)).toEqual([newest, "future"]);
    await cairn.close();
    rmSync(folder, { recursive: true, force: true });
  });
});
