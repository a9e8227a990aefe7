import { afterAll, beforeAll, expect, it } from "vitest";
import { projectDatabaseName } from "../../src/model/ids.ts";
import type { CheckpointFilter, CheckpointStore } from "../../src/ports/checkpoint-store.ts";
import { openPostgres, type PostgresDatabase } from "../../src/stores/postgres/driver/driver.ts";
import { postgresStorage } from "../../src/stores/postgres/storage.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";

const now = () => "2026-01-02T03:04:05.678Z";
const PROJECT = "/keyword-ranking";
const RECORDS = 12_000;
const BEST = 20;

let database: TestDatabase;
let sql: PostgresDatabase;
let bounded: CheckpointStore;
let exact: CheckpointStore;
const cleanUp: (() => Promise<void>)[] = [];

beforeAll(async () => {
  database = await testDatabase();
  const storages = [
    postgresStorage({ url: database.url, now }),
    postgresStorage({ url: database.url, now, exactMax: Number.POSITIVE_INFINITY }),
  ];
  [bounded, exact] = (await Promise.all(storages.map(async (storage) => (await storage.create(PROJECT)).checkpoints))) as [
    CheckpointStore,
    CheckpointStore,
  ];
  sql = openPostgres({ url: database.url });
  cleanUp.push(...storages.map((storage) => () => storage.close()), () => sql.close());
  const random = randomFrom(7);
  const texts = Array.from({ length: RECORDS }, () =>
    Array.from({ length: 8 + Math.floor(random() * 40) }, () => wordAt(random())).join(" "),
  );
  for (let from = 0; from < RECORDS; from += 2_000) await insert(texts.slice(from, from + 2_000), from);
});
afterAll(async () => {
  for (const undo of cleanUp) await undo();
  await database.drop();
});

it("returns the same best records as a ranking of all matches, with and without a filter", async () => {
  const random = randomFrom(11);
  const queries = Array.from({ length: 50 }, (_, index) =>
    Array.from({ length: 1 + (index % 8) }, () => wordAt(random() ** 0.7)).join(" "),
  );
  const filters: CheckpointFilter[] = [{}, { tags: ["few"] }];
  let equal = 0;
  for (const text of queries)
    for (const filter of filters) {
      const [ranked, wanted] = await Promise.all([bounded, exact].map((store) => best(store, text, filter)));
      if (JSON.stringify(ranked) === JSON.stringify(wanted)) equal++;
    }
  expect(equal / (queries.length * filters.length)).toBeGreaterThanOrEqual(0.99);
});

it("returns a record that was just saved in a large collection", async () => {
  expect(await best(bounded, "w9001 w1", {})).not.toContain("new");
  await insert(["w9001 w1"], RECORDS, "new");
  expect((await best(bounded, "w9001 w1", {}))[0]).toBe("new");
});

async function best(store: CheckpointStore, text: string, filter: CheckpointFilter): Promise<string[]> {
  return (await store.candidates({ filter, limit: 100, text })).keyword.slice(0, BEST).map(({ id }) => id);
}

/** Stores records by SQL: one call per record would take minutes. */
async function insert(texts: readonly string[], from: number, name?: string): Promise<void> {
  await sql.write(projectDatabaseName(PROJECT), (tx) =>
    tx.run(
      `INSERT INTO checkpoints (id, created_at, created_order, summary, description, context, anchors, superseded_by, tags, folded_tags,
                                token_count, pieces, updated_at, updated_order, revision, checksum, terms)
       SELECT id, now(), now(), text, '', '{}', '[]', '', tags, tags, 1, 1, now(), now(), 1, '', to_tsvector('simple', text)
         FROM (SELECT id, text, CASE WHEN right(id, 1) = '7' THEN '{few}'::text[] ELSE '{}' END AS tags FROM unnest($1::text[], $2::text[]) AS given (id, text)) AS given`,
      texts.map((_, index) => name ?? `r${String(from + index).padStart(6, "0")}`),
      texts,
    ),
  );
}

/** Returns words by Zipf's law: a few are in most records, most are in a few. */
function wordAt(random: number): string {
  return `w${Math.floor(3_000 ** random)}`;
}

function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}
