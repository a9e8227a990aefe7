import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openSqlite, type SqliteDatabase } from "../../src/stores/sqlite/driver/driver.ts";
import { insertTerms, rankByKeywords, selectCandidates } from "../../src/stores/sqlite/projects/full-text.ts";
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

/** Creates a table of records with these terms, with keys from `first` on. */
async function tableOf(records: readonly (readonly string[])[], first = 1): Promise<string> {
  const table = `terms_${++tables}`;
  await database.write((tx) => {
    tx.exec(`CREATE VIRTUAL TABLE ${table} USING fts5 (terms, content = '', contentless_delete = 1)`);
    for (const [index, terms] of records.entries()) insertTerms(tx, table, first + index, terms.join(" "));
  });
  return table;
}

const select = (table: string, terms: readonly string[], needed: number) =>
  database.read((tx) => selectCandidates(tx, table, terms, needed))?.toSorted((a, b) => a - b);

describe("the candidates of a keyword search", () => {
  it("are the records with the rarer terms, and all records of equal weight", async () => {
    const records = Array.from({ length: 400 }, (_, i) => ["common", ...(i < 30 ? ["rare"] : []), ...(i < 10 ? ["rarest"] : [])]);
    const table = await tableOf(records);
    const first = (count: number) => Array.from({ length: count }, (_, i) => i + 1);
    expect(select(table, ["common", "rare", "rarest"], 5)).toEqual(first(30));
    expect(select(table, ["common", "rare"], 10)).toEqual(first(30));
    // Fewer records than needed have the rare term, so all are scored.
    expect(select(table, ["common", "rare"], 31)).toBeUndefined();
  });

  it("are not selected for a query with one term or few matches", async () => {
    const table = await tableOf(Array.from({ length: 50 }, (_, i) => (i % 2 ? ["odd", "one"] : ["even", "one"])));
    expect(select(table, ["one"], 2)).toBeUndefined();
    expect(select(table, ["odd", "one"], 20)).toBeUndefined();
    expect(select(table, ["nothing", "here"], 1)).toBeUndefined();
    expect(select(await tableOf([]), ["nothing", "here"], 1)).toBeUndefined();
  });

  it("include every record that has all query terms of another candidate", async () => {
    const alphabet = ["a1", "b2", "c3", "d4", "e5"];
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.subarray(alphabet), { minLength: 20, maxLength: 120 }),
        fc.subarray(alphabet, { minLength: 2 }),
        fc.integer({ min: 1, max: 8 }),
        fc.integer({ min: 1, max: 100_000 }),
        async (records, terms, needed, firstKey) => {
          const table = await tableOf(records, firstKey);
          const candidates = select(table, terms, needed);
          if (!candidates) return;
          const matched = (key: number) => terms.filter((term) => records[key - firstKey]!.includes(term));
          expect(candidates.length).toBeGreaterThanOrEqual(needed);
          const selected = new Set(candidates);
          for (const key of candidates)
            for (let other = firstKey; other < firstKey + records.length; other++)
              if (matched(key).every((term) => matched(other).includes(term))) expect(selected).toContain(other);
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe("a keyword search in another language", () => {
  it("uses the stems of a language as soon as any connection has stored a record in it", async () => {
    const records = "records_of_languages";
    await database.write((tx) => tx.exec(`CREATE TABLE ${records} (key INTEGER PRIMARY KEY, id TEXT NOT NULL)`));
    const index = { table: await tableOf([]), records, hasLanguages: true };
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
