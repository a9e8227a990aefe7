import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openSqlite, type SqliteDatabase, type SqliteTx } from "../../src/stores/sqlite/driver/driver.ts";
import { type Postings, readPostings } from "../../src/stores/sqlite/projects/fts5-postings.ts";
import {
  type FullTextIndex,
  insertTerms,
  putTerms,
  rankByKeywords,
  removeTerms,
  type Where,
} from "../../src/stores/sqlite/projects/full-text.ts";
import { recordTerms } from "../../src/text/terms.ts";

const dir = mkdtempSync(join(tmpdir(), "cairn-candidates-"));
let database: SqliteDatabase;
let tables = 0;

beforeAll(async () => {
  database = await openSqlite({ path: join(dir, "terms.db") });
});
afterAll(() => {
  database.close();
  rmSync(dir, { recursive: true });
});

/** Creates a full-text index, and a table of records for it. Small pages let the lists of terms continue on further pages. */
async function createIndex(kind: "code" | "records"): Promise<FullTextIndex> {
  const table = `terms_${++tables}`;
  const records = `records_${tables}`;
  await database.write((tx) => {
    const content = kind === "code" ? ", content = '', contentless_delete = 1" : "";
    tx.exec(`CREATE VIRTUAL TABLE ${table} USING fts5 (terms${content})`);
    tx.exec(`CREATE TABLE ${records} (key INTEGER PRIMARY KEY, id TEXT NOT NULL)`);
    if (kind === "records") tx.exec(`INSERT INTO ${table} (${table}, rank) VALUES ('secure-delete', 1)`);
    tx.exec(`INSERT INTO ${table} (${table}, rank) VALUES ('pgsz', 64)`);
  });
  return { table, records, hasLanguages: false };
}

type Change = { readonly key: number; readonly terms: readonly string[] | undefined };

/** Writes or removes records, in one commit. */
async function commit({ table, records }: FullTextIndex, changes: readonly Change[]): Promise<void> {
  await database.write((tx) => {
    for (const { key, terms } of changes) {
      if (terms) putTerms(tx, table, key, terms.join(" "));
      else removeTerms(tx, table, key);
      tx.run(`DELETE FROM ${records} WHERE key = ?`, key);
      if (terms) tx.run(`INSERT INTO ${records} (key, id) VALUES (?, ?)`, key, `id ${key}`);
    }
  });
}

/** Returns the postings as FTS5 lists them: an entry for each position. */
function listPostings(tx: SqliteTx, table: string, term: string): Record<number, number> {
  tx.exec(`CREATE VIRTUAL TABLE IF NOT EXISTS temp.${table}_vocab USING fts5vocab (main, ${table}, 'instance')`);
  const rows = tx.all<{ doc: number; count: number }>(
    `SELECT doc, count(*) AS count FROM ${table}_vocab WHERE term = ? GROUP BY doc`,
    term,
  );
  return Object.fromEntries(rows.map(({ doc, count }) => [doc, count]));
}

const decode = ({ keys, counts }: Postings) => Object.fromEntries(Array.from(keys, (key, index) => [key, counts[index]!]));

describe.each(["code", "records"] as const)("the postings of an index of %s", (kind) => {
  it("equal the postings of FTS5, after any sequence of writes, deletions and merges", async () => {
    const vocabulary = ["a", "ab", "abc", "b", "line", "lines", "über", "数据"];
    const record = fc.array(fc.constantFrom(...vocabulary), { maxLength: 60 });
    const change = fc.record({ key: fc.integer({ min: 1, max: 40 }), terms: fc.option(record, { nil: undefined, freq: 3 }) });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(change, { maxLength: 12 }), { minLength: 1, maxLength: 12 }),
        fc.integer({ min: 1, max: 3_000_000 }),
        fc.boolean(),
        async (commits, firstKey, merge) => {
          const index = await createIndex(kind);
          const check = () =>
            database.read((tx) => {
              const found = readPostings(tx, index.table, [...vocabulary, "absent"]);
              for (const [place, term] of vocabulary.entries()) expect(decode(found![place]!)).toEqual(listPostings(tx, index.table, term));
              expect(found!.at(-1)!.keys).toHaveLength(0);
            });
          for (const changes of commits) {
            await commit(
              index,
              changes.map(({ key, terms }) => ({ key: key + firstKey, terms })),
            );
            check(); // each time: the postings of a segment are cached
          }
          if (!merge) return;
          await database.write((tx) => tx.exec(`INSERT INTO ${index.table} (${index.table}, rank) VALUES ('merge', -2)`));
          check();
        },
      ),
      { numRuns: 40 },
    );
  });

  it("are not read from a layout that is not known", async () => {
    const { table } = await createIndex(kind);
    const newer = (tx: SqliteTx): SqliteTx => ({
      ...tx,
      get: (sql, ...params) => (sql.includes("_config") ? ({ v: 6 } as never) : tx.get(sql, ...params)),
    });
    expect(database.read((tx) => readPostings(tx, table, ["a"]))).toHaveLength(1);
    expect(database.read((tx) => readPostings(newer(tx), table, ["a"]))).toBeUndefined();
  });
});

describe("a keyword search of a large index", () => {
  it.each(["code", "records"] as const)("returns the ranking and the scores of FTS5 for %s", async (kind) => {
    const index = await createIndex(kind);
    const random = mulberry(7);
    const wordOf = () => ["common", "usual", "frequent", "seldom", "rare", "rarest"][Math.floor(6 * random() ** 0.5)]!;
    const changes = Array.from({ length: 1_500 }, (_, i) => ({
      key: i + 1,
      terms: Array.from({ length: 1 + Math.floor(30 * random()) }, wordOf),
    }));
    for (let from = 0; from < changes.length; from += 300) await commit(index, changes.slice(from, from + 300));
    await commit(index, [
      { key: 3, terms: undefined },
      { key: 4, terms: ["rare", "rare"] },
    ]);
    const search = (query: string, where?: Where) => database.read((tx) => rankByKeywords(tx, index, query, where, 20));
    const all = { sql: "true", params: [] };
    for (const query of ["rare", "rare common", "seldom usual rarest", "frequent absent", "absent"]) {
      const [found, expected] = [search(query), search(query, all)];
      expect(found.map(({ id, matched }) => [id, matched])).toEqual(expected.map(({ id, matched }) => [id, matched]));
      for (const [place, { score }] of found.entries()) expect(score).toBeCloseTo(expected[place]!.score, 9);
    }
  });
});

/** A seeded random generator, so that a failure can be repeated. */
function mulberry(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32;
  };
}

describe("a keyword search in another language", () => {
  it("uses the stems of a language as soon as any connection has stored a record in it", async () => {
    const index = { ...(await createIndex("code")), hasLanguages: true };
    const { records } = index;
    const find = () => database.read((tx) => rankByKeywords(tx, index, "Häuser", undefined, 10)).map(({ id }) => id);
    const put = (to: SqliteDatabase, key: number, id: string, text: string) =>
      to.write((tx) => {
        insertTerms(tx, index.table, key, recordTerms(text).join(" "));
        tx.run(`INSERT INTO ${records} (key, id) VALUES (?, ?)`, key, id);
      });
    const other = await openSqlite({ path: join(dir, "terms.db") });
    await put(database, 1, "english", "The houses are built");
    expect(find()).toEqual([]);
    await put(other, 2, "german", "Das Haus wurde von den Arbeitern gebaut und nicht von uns");
    expect(find()).toEqual(["german"]);
    await put(database, 3, "another", "Die Häuser und das Haus sind für die Leute");
    expect(find().toSorted()).toEqual(["another", "german"]);
    other.close();
  });
});
