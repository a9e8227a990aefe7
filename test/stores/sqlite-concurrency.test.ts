import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { wantToWrite } from "../../src/scheduling/yield.ts";
import { openSqlite, type SqliteDatabase } from "../../src/stores/sqlite/driver/driver.ts";

it("reads while writes of the same process are waiting", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "cairn-"));
  const cairn = await open({ dataDir, embedder: { kind: "none" } });
  const projectPath = "/p";
  const save = async (index: number) => {
    for (let wait = 0; wait < index % 5; wait++) await turn();
    return cairn.checkpoints.save({ projectPath, summary: `Number ${index}` });
  };
  await Promise.all(Array.from({ length: 100 }, (_, index) => save(index)));
  expect(await cairn.checkpoints.list({ projectPath, limit: 1 })).toMatchObject({ total: 100 });
  await cairn.close();
  rmSync(dataDir, { recursive: true });
});

describe("a write that can wait", () => {
  const dir = mkdtempSync(join(tmpdir(), "cairn-yield-"));
  let patient: SqliteDatabase;
  let urgent: SqliteDatabase;
  beforeAll(async () => {
    [patient, urgent] = [await openSqlite({ path: join(dir, "a.db") }), await openSqlite({ path: join(dir, "a.db") })];
    await urgent.write((tx) => tx.exec("CREATE TABLE notes (position INTEGER PRIMARY KEY, text TEXT)"));
  });
  afterAll(() => {
    patient.close();
    urgent.close();
    rmSync(dir, { recursive: true });
  });

  const add = (db: SqliteDatabase, text: string, derived = false, during = () => {}) =>
    db.write(
      (tx) => {
        tx.run("INSERT INTO notes (text) VALUES (?)", `${text} begins`);
        during();
        tx.run("INSERT INTO notes (text) VALUES (?)", `${text} ends`);
      },
      { derived },
    );
  const notes = () => urgent.read((tx) => tx.all<{ text: string }>("SELECT text FROM notes ORDER BY position").map(({ text }) => text));

  it("gives up the lock for another connection of its process and begins anew", async () => {
    let tries = 0;
    let saved: Promise<void> | undefined;
    let wanted = () => {};
    await add(patient, "index", true, () => {
      tries++;
      if (saved) return;
      wanted = wantToWrite(); // until the other has said so itself, which it does in a turn of its own
      saved = add(urgent, "save").finally(wanted);
    });
    await saved;
    expect(tries).toBe(2);
    expect(notes()).toEqual(["save begins", "save ends", "index begins", "index ends"]);
  });

  it("has its turn in the end, however much others want to write", async () => {
    const written = wantToWrite();
    let tries = 0;
    try {
      await add(patient, "late", true, () => {
        tries++;
      });
    } finally {
      written();
    }
    expect(tries).toBe(1);
    expect(notes().slice(-2)).toEqual(["late begins", "late ends"]);
  });
});
