import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { sha256Hex, systemClock } from "../../src/model/ids.ts";
import type { CodeStore, FileWrite } from "../../src/ports/code-store.ts";
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

async function openStore(): Promise<CodeStore> {
  const dataDir = mkdtempSync(join(tmpdir(), "cairn-long-"));
  const storage = sqliteStorage({ dataDir, now: systemClock });
  onTestFinished(async () => {
    await storage.close();
    rmSync(dataDir, { recursive: true });
  });
  return (await storage.create(PROJECT)).code;
}

const textOf = async (store: CodeStore) => (await store.chunksOf("long.txt")).map(({ text }) => text).join("");
const wholeText = (word: string) =>
  longFile(word)
    .chunks.map(({ chunk }) => chunk.text)
    .join("");

/** Returns the different texts that a reader sees until the commit ends. */
async function seenDuring(store: CodeStore, commit: Promise<unknown>): Promise<ReadonlySet<string>> {
  let committing = true;
  const ended = commit.finally(() => {
    committing = false;
  });
  const seen = new Set<string>();
  while (committing) {
    seen.add(await textOf(store));
    await new Promise((resolve) => setImmediate(resolve));
  }
  await ended;
  return seen;
}

it("shows a long file whole or not at all while a thread commits it", async () => {
  const store = await openStore();
  const added = await seenDuring(store, store.commit({ at: AT, files: [longFile("alpha")] }));
  expect(["", wholeText("alpha")]).toEqual(expect.arrayContaining([...added]));
  expect(await textOf(store)).toBe(wholeText("alpha"));
  const replaced = await seenDuring(store, store.commit({ at: AT, files: [longFile("beta")] }));
  expect([wholeText("alpha"), wholeText("beta")]).toEqual(expect.arrayContaining([...replaced]));
  expect(await textOf(store)).toBe(wholeText("beta"));
  expect(await store.orphans()).toEqual({ rows: 0, terms: 0, vectors: 0 });
});
