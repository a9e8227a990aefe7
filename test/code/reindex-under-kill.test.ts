import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, it, vi } from "vitest";
import { projectDatabaseName, systemClock } from "../../src/model/ids.ts";
import type { CodeStore } from "../../src/ports/code-store.ts";
import type { Storage } from "../../src/ports/storage.ts";
import { postgresStorage } from "../../src/stores/postgres/storage.ts";
import { checkFile } from "../../src/stores/sqlite/driver/damage.ts";
import { sqliteStorage } from "../../src/stores/sqlite/storage.ts";
import { counts } from "../faults/processes.ts";
import { postgresWanted, testDatabase } from "../setup/postgres.ts";
import { killProcess } from "../support/processes.ts";
import { type QdrantStandIn, qdrantStandIn } from "../support/qdrant-server.ts";
import { treeAt } from "./changing-tree.mjs";
import { differingCodes } from "./stored-codes.ts";

const projectPath = "/srv/changing";
const NOTHING_LOST = { rows: 0, terms: 0, vectors: 0 };
const ROUNDS = counts({ short: 3, soak: 100 });

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const undo of cleanUp.splice(0).reverse()) await undo();
});

const soak = counts({ short: false, soak: true });
const places = [
  { storage: "sqlite", mirrored: false, name: "SQLite" },
  { storage: "sqlite", mirrored: true, name: "SQLite with Qdrant (the stand-in)" },
  ...(postgresWanted ? [{ storage: "postgres", mirrored: false, name: "PostgreSQL" }] : []),
  ...(postgresWanted && soak ? [{ storage: "postgres", mirrored: true, name: "PostgreSQL with Qdrant (the stand-in)" }] : []),
];

describe.each(places)("a changing tree, indexed again and again, on $name", ({ storage: kind, mirrored, name }) => {
  it(`survives ${ROUNDS} kills -9: only current content, nothing left behind, and a client that searches meanwhile misses nothing`, {
    timeout: counts({ short: 900_000, soak: 3_600_000 }),
  }, async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "cairn-changing-"));
    cleanUp.push(() => rmSync(dataDir, { recursive: true, force: true }));
    const url = kind === "postgres" ? await database() : undefined;
    const standIn = mirrored ? await qdrant() : undefined;
    const order = JSON.stringify({ projectPath, dataDir, storage: url ?? "sqlite", ...(standIn && { qdrant: { url: standIn.url } }) });
    const storage = url ? postgresStorage({ url, now: systemClock }) : sqliteStorage({ dataDir, now: systemClock });
    cleanUp.push(() => storage.close());

    let indexer = start("reindexing-process.mjs", order);
    await indexer.line(); // ready
    await indexer.reindex(0);
    const client = start("searching-process.mjs", order);
    await client.line(); // ready
    let tookMs = 200;
    for (let round = 1; round <= ROUNDS; round++) {
      indexer.child.stdin!.write(`${round}\n`);
      await sleep(Math.random() * tookMs * 1.2);
      await killProcess(indexer.child);
      expect(indexer.child.signalCode).toBe("SIGKILL");
      const { code } = (await storage.find(projectPath))!;
      await expectFrom(code, [treeAt(round - 1), treeAt(round)], "each file of the round before or of this one");

      indexer = start("reindexing-process.mjs", order);
      await indexer.line();
      const began = performance.now();
      await indexer.reindex(round);
      tookMs = (tookMs + performance.now() - began) / 2;
      await expectExactly(code, treeAt(round), round);
    }
    // Copying continues while a process is open; a process that ends copies for a short time only.
    if (standIn) await expectCopied((await storage.find(projectPath))!.code, standIn);
    indexer.child.stdin!.end();
    expect(await indexer.exit()).toBe(0);
    client.child.stdin!.end();
    const seen = JSON.parse(await client.line()) as { searches: number; problems: string[] };
    expect(seen.problems).toEqual([]);
    expect(seen.searches).toBeGreaterThan(ROUNDS);
    expect(await client.exit()).toBe(0);
    await expectNothingLeft(storage, dataDir, kind);
    if (soak) process.stdout.write(`${name}: ${ROUNDS} kills, ${seen.searches} searches meanwhile, none wrong\n`);
  });
});

/** A kill in the middle of a tree leaves each of its files whole, as it was or as it is. */
async function expectFrom(code: CodeStore, trees: readonly Map<string, string>[], what: string): Promise<void> {
  const files = await code.files();
  for (const { path } of files) {
    const text = (await code.chunksOf(path)).map(({ text }) => text).join("");
    expect(
      trees.map((tree) => tree.get(path)),
      `${what}: ${path}`,
    ).toContain(text);
  }
  expect(await code.orphans()).toEqual(NOTHING_LOST);
}

async function expectExactly(code: CodeStore, tree: ReadonlyMap<string, string>, round: number): Promise<void> {
  expect((await code.files()).map(({ path }) => path)).toEqual([...tree.keys()].sort());
  await expectFrom(code, [new Map(tree)], `round ${round}`);
  const [version] = await code.embeddings.versions();
  const { records, vectors } = await code.embeddings.counts(version!.versionId);
  expect(vectors).toBe(records);
  // Keyword search: every chunk is found by the common term, and none that is not there any more.
  const { keyword } = await code.candidates({ filter: {}, limit: 1_000, text: "filler" });
  expect(keyword).toHaveLength(records);
  expect(await code.getMany(keyword.map(({ id }) => id))).toHaveLength(records);
}

async function expectNothingLeft(storage: Storage, dataDir: string, kind: string): Promise<void> {
  const { code } = (await storage.find(projectPath))!;
  expect(await code.orphans()).toEqual(NOTHING_LOST);
  if (kind !== "sqlite") return;
  const path = join(dataDir, "projects", `${projectDatabaseName(projectPath)}.db`);
  expect(await differingCodes(path)).toEqual([]);
  expect((await checkFile(path)).problems).toEqual([]);
}

/** Waits until Qdrant has exactly the current chunks. */
async function expectCopied(code: CodeStore, standIn: QdrantStandIn): Promise<void> {
  const chunks = (await Promise.all((await code.files()).map(({ path }) => code.chunksOf(path)))).flat();
  await vi.waitFor(
    () => {
      const points = [...standIn.collections.values()].flatMap((collection) => [...collection.points.values()]);
      const ofCode = points.filter(({ payload }) => String(payload.tenant).includes("_code_v"));
      expect(ofCode.map(({ payload }) => payload.id).sort()).toEqual(chunks.map(({ id }) => id).sort());
    },
    { timeout: 120_000, interval: 100 },
  );
  expect(standIn.violations).toEqual([]);
}

function start(program: string, order: string) {
  const child = spawn(process.execPath, [join(import.meta.dirname, program), order], { stdio: ["pipe", "pipe", "pipe"] });
  cleanUp.push(() => killProcess(child));
  let errors = "";
  child.stderr.on("data", (data) => {
    errors += data;
  });
  child.stdin.on("error", () => {}); // it may be dead before it reads
  const exited = once(child, "exit");
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const line = async (): Promise<string> => {
    const { done, value } = await lines.next();
    if (done) throw new Error(`${program} ended too early: ${errors}`);
    return value;
  };
  return {
    child,
    line,
    async exit(): Promise<unknown> {
      const [status] = await exited;
      if (status !== 0) throw new Error(`${program} ended with ${status}: ${errors}`);
      return status;
    },
    async reindex(round: number): Promise<void> {
      child.stdin.write(`${round}\n`);
      expect(await line()).toBe(String(round));
    },
  };
}

async function database(): Promise<string> {
  const made = await testDatabase();
  cleanUp.push(() => made.drop());
  return made.url;
}

async function qdrant(): Promise<QdrantStandIn> {
  const standIn = await qdrantStandIn();
  cleanUp.push(() => standIn.close());
  return standIn;
}
