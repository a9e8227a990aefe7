import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { minilmEmbedder } from "../../src/embedders/local/minilm.ts";
import { staticEmbedder } from "../../src/embedders/local/static.ts";
import { type Cairn, open } from "../../src/index.ts";
import { checkpointText } from "../../src/model/stored-record.ts";
import { postgresWanted, type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { hashEmbedder } from "../support/hash-embedder.mjs";
import { killProcess } from "../support/processes.ts";
import { type Reference, searchingClient } from "./searching-client.ts";

/** The long form, in `npm run test:soak`, has the real models; the short one two quick ones. */
const soak = process.env.CAIRN_SOAK === "1";
const RECORDS = soak ? 10_000 : 600;
const KILLS = soak ? 20 : 2;
const quick = [
  { model: "first", dimension: 48 },
  { model: "second", dimension: 64 },
];
const projectPath = "/srv/upgraded";
const ref = { projectPath, collection: "checkpoints" as const };

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const undo of cleanUp.splice(0).reverse()) await undo();
});

describe.each(["sqlite", ...(postgresWanted ? ["postgres"] : [])])("a change of the model on %s", (kind) => {
  it(`keeps ${RECORDS} records through ${KILLS} kill -9s and one at the switch, while a client searches and saves`, {
    timeout: soak ? 3_600_000 : 900_000,
  }, async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "cairn-upgrade-"));
    cleanUp.push(() => rmSync(dataDir, { recursive: true, force: true }));
    const storage = kind === "postgres" ? await database() : kind;
    const embedders = soak ? [staticEmbedder(), minilmEmbedder()] : quick.map(hashEmbedder);
    const [from, to] = embedders.map(({ model }) => model) as [string, string];
    const cairn = await open({ storage, dataDir, embedder: soak ? { kind: "static" } : quick.map(hashEmbedder) });
    cleanUp.push(
      () => cairn.close(),
      () => Promise.all(embedders.map((embedder) => embedder.close())),
    );
    const words = wordSource();
    const references: Reference[] = embedders.map((embedder) => ({ embedder, vectors: new Map() }));
    await load(cairn, references, words);

    const client = searchingClient(cairn, projectPath, references, words);
    await client.settled();
    const order = {
      storage,
      dataDir,
      projectPath,
      to,
      embedder: soak ? { kind: "static" } : quick.map((one) => ({ ...one, paceMs: 120 })),
    };
    let stored = 0;
    for (let kill = 0; kill < KILLS; kill++) {
      const child = upgrade(order);
      const reported = await progressUntil(child, (lines) => lines.length > kill % 4);
      await sleep(Math.random() * 60);
      await killProcess(child);
      const version = (await cairn.embeddings.list(ref)).find(({ model }) => model === to)!;
      expect(version.isCurrent).toBe(false);
      expect(version.vectors, "every batch that was reported as stored is stored").toBeGreaterThanOrEqual(reported.at(-1)!.done!);
      expect(version.vectors).toBeGreaterThan(stored);
      stored = version.vectors;
      await client.settled();
    }
    const atTheSwitch = upgrade(order);
    await progressUntil(atTheSwitch, (lines) => (lines.at(-1)?.done ?? 0) >= (lines.at(-1)?.total ?? 1));
    await killProcess(atTheSwitch);

    const last = upgrade(order);
    const { result } = (await progressUntil(last, (lines) => lines.at(-1)?.result !== undefined)).at(-1)!;
    expect(result).toMatchObject({ model: to, switched: true });
    await client.settled();
    expect(await cairn.embeddings.rollback(ref)).toMatchObject({ model: from, switched: true });
    await client.settled();
    expect(await cairn.embeddings.upgrade({ ...ref, model: soak ? "minilm" : to })).toMatchObject({ model: to, switched: true });
    await client.settled();
    const pruned = await cairn.embeddings.prune(ref);
    await client.settled();
    await client.stop();

    expect(client.models).toEqual([from, to, from, to]);
    expect(client.saves).toBeGreaterThan(0);
    const records = RECORDS + client.saves;
    expect(pruned.versions).toBe(1);
    expect(pruned.vectors).toBeGreaterThanOrEqual(RECORDS);
    const versions = await cairn.embeddings.list(ref);
    expect(versions.map(({ model, isCurrent, vectors }) => ({ model, isCurrent, vectors }))).toEqual([
      { model: to, isCurrent: true, vectors: records },
    ]);
    expect(await idsOf(cairn)).toEqual([...references[0]!.vectors.keys()].sort());
  });
});

async function database(): Promise<string> {
  const made: TestDatabase = await testDatabase();
  cleanUp.push(() => made.drop());
  return made.url;
}

async function load(cairn: Cairn, references: readonly Reference[], words: () => string): Promise<void> {
  for (let start = 0; start < RECORDS; start += 50) {
    const saved = await Promise.all(
      Array.from({ length: 50 }, (_, i) => cairn.checkpoints.save({ projectPath, summary: `note ${start + i}: ${words()}` })),
    );
    expect(saved.every(({ embedded }) => embedded)).toBe(true);
    for (const { embedder, vectors } of references) {
      const made = await embedder.embed(saved.map(checkpointText));
      for (const [index, { id }] of saved.entries()) vectors.set(id, made[index]!);
    }
  }
}

async function idsOf(cairn: Cairn): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const { checkpoints, nextCursor } = await cairn.checkpoints.list({ projectPath, limit: 100, cursor });
    ids.push(...checkpoints.map(({ id }) => id));
    if (nextCursor === undefined) return ids.sort();
    cursor = nextCursor;
  }
}

interface ProgressLine {
  readonly done?: number;
  readonly total?: number;
  readonly result?: unknown;
}

function upgrade(order: object): ChildProcess {
  const child = spawn(process.execPath, [join(import.meta.dirname, "upgrade-process.mjs"), JSON.stringify(order)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  cleanUp.push(() => killProcess(child));
  return child;
}

/** Reads the output of the process until it is sufficient. */
async function progressUntil(child: ChildProcess, enough: (lines: readonly ProgressLine[]) => boolean): Promise<ProgressLine[]> {
  const lines: ProgressLine[] = [];
  for await (const line of createInterface({ input: child.stdout! })) {
    lines.push(JSON.parse(line));
    if (enough(lines)) return lines;
  }
  throw new Error(`The upgrade ended too early, after ${JSON.stringify(lines.at(-1))}`);
}

/** Sentences of common words in an order that is the same in every run. */
function wordSource(): () => string {
  let state = 7;
  const random = (below: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state >>> 8) % below;
  };
  return () => Array.from({ length: 7 }, () => WORDS[random(WORDS.length)]).join(" ");
}

const WORDS =
  "server login token session cache index query parser build deploy release branch merge review test failure timeout retry queue worker thread memory leak disk network socket header cookie user password schema table column migration backup restore metric alert graph dashboard style layout button form field error warning log trace span budget invoice payment customer order shipment garden river mountain bread coffee music".split(
    " ",
  );
