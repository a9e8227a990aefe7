import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openSqlite, type SqliteDatabase } from "../../src/stores/sqlite/driver/driver.ts";
import { insertTerms } from "../../src/stores/sqlite/projects/full-text.ts";
import { shortlist } from "../../src/stores/sqlite/projects/shortlist.ts";

const dir = mkdtempSync(join(tmpdir(), "cairn-shortlist-"));
let database: SqliteDatabase;
let tables = 0;

beforeAll(async () => {
  database = await openSqlite({ path: join(dir, "words.db") });
});
afterAll(() => {
  database.close();
  rmSync(dir, { recursive: true });
});

/** A table of records with these words, keyed from `first` on. */
async function tableOf(records: readonly (readonly string[])[], first = 1): Promise<string> {
  const table = `words_${++tables}`;
  await database.write((tx) => {
    tx.exec(`CREATE VIRTUAL TABLE ${table} USING fts5 (terms, content = '', contentless_delete = 1)`);
    for (const [index, words] of records.entries()) insertTerms(tx, table, first + index, words.join(" "));
  });
  return table;
}

const listOf = (table: string, words: readonly string[], needed: number) =>
  database.read((tx) => shortlist(tx, table, words, needed))?.toSorted((a, b) => a - b);

describe("the shortlist of a keyword search", () => {
  it("takes the records with the rarer terms, and all with equal points", async () => {
    const records = Array.from({ length: 400 }, (_, i) => ["common", ...(i < 30 ? ["rare"] : []), ...(i < 10 ? ["rarest"] : [])]);
    const table = await tableOf(records);
    const first = (count: number) => Array.from({ length: count }, (_, i) => i + 1);
    expect(listOf(table, ["common", "rare", "rarest"], 5)).toEqual(first(30));
    expect(listOf(table, ["common", "rare"], 10)).toEqual(first(30));
    // Fewer than are needed have one of the rare words: then all are scored.
    expect(listOf(table, ["common", "rare"], 31)).toBeUndefined();
  });

  it("leaves a query alone that has one word, or that finds little", async () => {
    const table = await tableOf(Array.from({ length: 50 }, (_, i) => (i % 2 ? ["odd", "one"] : ["even", "one"])));
    expect(listOf(table, ["one"], 2)).toBeUndefined();
    expect(listOf(table, ["odd", "one"], 20)).toBeUndefined();
    expect(listOf(table, ["nothing", "here"], 1)).toBeUndefined();
    expect(listOf(await tableOf([]), ["nothing", "here"], 1)).toBeUndefined();
  });

  it("never leaves out a record that has all words of another that it takes", async () => {
    const alphabet = ["a1", "b2", "c3", "d4", "e5"];
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.subarray(alphabet), { minLength: 20, maxLength: 120 }),
        fc.subarray(alphabet, { minLength: 2 }),
        fc.integer({ min: 1, max: 8 }),
        fc.integer({ min: 1, max: 100_000 }),
        async (records, words, needed, firstKey) => {
          const table = await tableOf(records, firstKey);
          const taken = listOf(table, words, needed);
          if (!taken) return;
          const asked = (key: number) => words.filter((word) => records[key - firstKey]!.includes(word));
          expect(taken.length).toBeGreaterThanOrEqual(needed);
          const chosen = new Set(taken);
          for (const key of taken)
            for (let other = firstKey; other < firstKey + records.length; other++)
              if (asked(key).every((word) => asked(other).includes(word))) expect(chosen).toContain(other);
        },
      ),
      { numRuns: 60 },
    );
  });
});
