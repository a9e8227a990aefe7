import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { projectDatabaseName, sha256Hex } from "../../src/model/ids.ts";
import { systemClock } from "../../src/ports/clock.ts";
import type { CodeStore, FileWrite } from "../../src/ports/code-store.ts";
import { openSqlite, type SqliteDatabase } from "../../src/stores/sqlite/driver/driver.ts";
import { sqliteStorage } from "../../src/stores/sqlite/storage.ts";

const PROJECT = "/p";
const AT = "2026-01-02T03:04:05.678Z";
const CHUNKS = 180;

function longFile(word: string): FileWrite {
  const texts = Array.from({ length: CHUNKS }, (_, index) => `${word} ${index}\n`);
  const chunks = texts.map((text, index) => ({
    vectors: [],
    chunk: { index, kind: "text" as const, parents: [], defines: [], startLine: index + 1, endLine: index + 1, text },
  }));
  return { path: "long.txt", contentHash: sha256Hex(texts.join("")), language: "text", bytes: 1, lines: CHUNKS, symbols: [], chunks };
}

/** The store, and a second connection that does something after the first chunks of a long file are in. */
async function opened(): Promise<{ store: CodeStore; during(meddle: (db: SqliteDatabase) => Promise<unknown>): Promise<void> }> {
  const dataDir = mkdtempSync(join(tmpdir(), "cairn-long-"));
  const storage = sqliteStorage({ dataDir, now: systemClock });
  const { code: store } = await storage.create(PROJECT);
  const other = await openSqlite({ path: join(dataDir, "projects", `${projectDatabaseName(PROJECT)}.db`) });
  onTestFinished(async () => {
    other.close();
    await storage.close();
    rmSync(dataDir, { recursive: true });
  });
  return {
    store,
    async during(meddle) {
      const count = () => other.read((tx) => tx.get<{ count: number }>("SELECT count(*) AS count FROM code_chunks")!.count);
      const before = count();
      while (count() === before) await new Promise((resolve) => setImmediate(resolve));
      await meddle(other);
    },
  };
}

const textOf = async (store: CodeStore) => (await store.chunksOf("long.txt")).map(({ text }) => text).join("");
const wholeText = (word: string) =>
  longFile(word)
    .chunks.map(({ chunk }) => chunk.text)
    .join("");

it("shows nothing of a long file until all of it is there", async () => {
  const { store, during } = await opened();
  const seen: unknown[] = [];
  await Promise.all([
    store.commit({ at: AT, files: [longFile("alpha")] }),
    during(async () =>
      seen.push(
        await store.files(),
        await store.chunksOf("long.txt"),
        (await store.candidates({ filter: {}, limit: 9, text: "alpha" })).keyword,
      ),
    ),
  ]);
  expect(seen).toEqual([[], [], []]);
  expect(await textOf(store)).toBe(wholeText("alpha"));
  await Promise.all([
    store.commit({ at: AT, files: [longFile("beta")] }),
    during(async () => expect(await textOf(store)).toBe(wholeText("alpha"))),
  ]);
  expect(await textOf(store)).toBe(wholeText("beta"));
});

it("takes a long file in although another process has removed its chunks as left behind", async () => {
  const { store, during } = await opened();
  await Promise.all([store.commit({ at: AT, files: [longFile("alpha")] }), during(() => store.reconcile())]);
  expect(await textOf(store)).toBe(wholeText("alpha"));
  expect(await store.orphans()).toEqual({ rows: 0, terms: 0, vectors: 0 });
});

it("takes a long file in although another process has written it meanwhile", async () => {
  const { store, during } = await opened();
  const short = { ...longFile("gamma"), chunks: longFile("gamma").chunks.slice(0, 3), contentHash: sha256Hex("gamma") };
  await Promise.all([store.commit({ at: AT, files: [longFile("alpha")] }), during(() => store.commit({ at: AT, files: [short] }))]);
  expect(await textOf(store)).toBe(wholeText("alpha"));
  expect(await store.orphans()).toEqual({ rows: 0, terms: 0, vectors: 0 });
});
