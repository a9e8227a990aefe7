import { existsSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadEngine } from "../../src/stores/sqlite/driver/engine.ts";
import { fromMicros, toMicros } from "../../src/stores/sqlite/migration/time.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { reseal } from "../support/reseal.ts";
import { makeProject, places, projectFile, projectNamed } from "./place.ts";

let database: TestDatabase;
const place = places();
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

let count = 0;
async function projectWith(change: (db: DatabaseSync) => void) {
  const where = place();
  const name = `/hostile/${count++}`;
  await makeProject(where, name, 3);
  const { DatabaseSync } = await loadEngine();
  const db = new DatabaseSync(projectFile(where, name));
  change(db);
  db.close();
  return { ...where, name, which: projectNamed(name), file: projectFile(where, name) };
}

const set =
  (sql: string, ...params: (string | number | bigint | Uint8Array)[]) =>
  (db: DatabaseSync) =>
    void db.prepare(sql).run(...params);
const summary = "UPDATE checkpoints SET summary = CAST(? AS TEXT) WHERE id = 'checkpoint-1'";
const floats = (...values: number[]) => new Uint8Array(Float32Array.from({ length: 8 }, (_, i) => values[i] ?? 0).buffer);

describe("values that the other side cannot hold", () => {
  const refused: Readonly<Record<string, [(db: DatabaseSync) => void, RegExp]>> = {
    "text with a NUL character": [set(summary, Buffer.from("a\0b")), /checkpoints with id "checkpoint-1".*summary holds a NUL/],
    "a lone surrogate": [
      set(summary, Buffer.from([0x61, 0xed, 0xa0, 0x80])),
      /checkpoints with id "checkpoint-1".*summary is not valid UTF-8/,
    ],
    "bytes where text belongs": [
      set("UPDATE checkpoints SET summary = ? WHERE id = 'checkpoint-1'", new Uint8Array([1, 2])),
      /checkpoints with id "checkpoint-1".*summary is blob/,
    ],
    "a number that is too large": [
      set("UPDATE checkpoints SET token_count = ? WHERE id = 'checkpoint-1'", 2n ** 31n),
      /checkpoints with id "checkpoint-1".*token_count is 2147483648/,
    ],
    "a time before PostgreSQL's": [
      set("UPDATE checkpoints SET created_at = ? WHERE id = 'checkpoint-1'", "-271821-04-20T00:00:00.000Z"),
      /checkpoints with id "checkpoint-1".*created_at is -271821/,
    ],
    "a text that is not a time": [
      set("UPDATE checkpoints SET created_at = ? WHERE id = 'checkpoint-1'", "2026-02-30T00:00:00.000Z"),
      /checkpoints with id "checkpoint-1".*not a time/,
    ],
    "a vector with NaN": [
      set("UPDATE vectors SET vector = ? WHERE rowid = 1", floats(Number.NaN, 1)),
      /vectors with version_id 1, key 1.*NaN/,
    ],
    "a vector with an infinity": [
      set("UPDATE vectors SET vector = ? WHERE rowid = 1", floats(Number.POSITIVE_INFINITY)),
      /vectors with version_id 1, key 1.*infinity/,
    ],
    "a vector of another length": [
      set("UPDATE vectors SET vector = ? WHERE rowid = 1", new Uint8Array(12)),
      /has 3 dimensions where its version has 8/,
    ],
    "a tag with a NUL character": [
      set("UPDATE checkpoint_tags SET tag = CAST(? AS TEXT)", Buffer.from("t\0")),
      /checkpoints with id .*tags holds a NUL/,
    ],
  };
  for (const [what, [change, said]] of Object.entries(refused))
    it(`are refused before anything is changed, naming the row: ${what}`, async () => {
      const { migrations, which, file } = await projectWith(change);
      await expect(migrations.migrate({ to: database.url, which })).rejects.toThrow(said);
      expect(existsSync(`${file}.migration`)).toBe(false);
      expect(existsSync(file)).toBe(true);
      await expect(migrations.migrate({ to: database.url, which, dryRun: true })).rejects.toThrow(said);
    });
});

describe("values that both sides hold", () => {
  it("are the same after a migration and back", async () => {
    const text = "Кириллица 🧭 \u{10ffff} \ufeff \u202e \r\n\t\\ ' \" \u0001";
    const { migrations, which, file } = await projectWith((db) => {
      const update = db.prepare("UPDATE checkpoints SET summary = ?, description = '', created_at = ?, updated_at = ? WHERE id = ?");
      update.run(text, "-004712-01-01T00:00:00.000Z", "+275760-09-13T00:00:00.000Z", "checkpoint-0");
      update.run("", "0000-01-01T00:00:00.000Z", "1969-12-31T23:59:59.999Z", "checkpoint-1");
      db.prepare("UPDATE knowledge SET uses = ?, successes = 0 WHERE id = 'knowledge-1'").run(2n ** 53n - 1n);
      // A negative zero and the smallest number there is, in a vector of length one.
      db.prepare("UPDATE vectors SET vector = ? WHERE rowid = 1").run(floats(1, -0, 1.4e-45));
      db.prepare("UPDATE embedding_versions SET created_at = '2026-01-02 03:04:05'").run(); // as SQLite writes it
      reseal(db);
    });
    const before = await migrations.migrate({ to: database.url, which, dryRun: true });
    const up = await migrations.migrate({ to: database.url, which });
    expect(up.databases[0]!.tables).toEqual(before.databases[0]!.tables);
    const down = await migrations.migrate({ to: "sqlite", which });
    expect(down.databases[0]!.tables).toEqual(before.databases[0]!.tables);

    const { DatabaseSync } = await loadEngine();
    const db = new DatabaseSync(file);
    expect(db.prepare("SELECT summary, created_at, updated_at FROM checkpoints WHERE id = 'checkpoint-0'").get()).toEqual({
      summary: text,
      created_at: "-004712-01-01T00:00:00.000Z",
      updated_at: "+275760-09-13T00:00:00.000Z",
    });
    const vector = db.prepare("SELECT hex(v.vector) AS hex FROM vectors v WHERE v.key = 16 ORDER BY v.collection_id LIMIT 1").get() as {
      hex: string;
    };
    expect(vector.hex).toBe(
      Buffer.from(floats(1, -0, 1.4e-45))
        .toString("hex")
        .toUpperCase(),
    );
    expect((db.prepare("SELECT CAST(uses AS TEXT) AS uses FROM knowledge WHERE id = 'knowledge-1'").get() as { uses: string }).uses).toBe(
      String(2n ** 53n - 1n),
    );
    db.close();
  });

  it("hold times to the microsecond, as PostgreSQL may write them", () => {
    for (const time of [
      "2026-01-02T03:04:05.678Z",
      "2026-01-02T03:04:05.678901Z",
      "1969-12-31T23:59:59.999999Z",
      "+275760-09-13T00:00:00.000Z",
    ])
      expect(fromMicros(toMicros(time)!)).toBe(time);
    expect(toMicros("2026-01-02 03:04:05")).toBe(toMicros("2026-01-02T03:04:05.000Z"));
    expect(toMicros("2026-01-02T03:04:05")).toBeUndefined();
    expect(fromMicros(9_223_371_331_199_999_999n)).toBeUndefined();
  });
});
