import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, describe, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { checkpointText } from "../../src/model/stored-record.ts";
import { splitPieces } from "../../src/text/pieces.ts";
import { postgresWanted, testDatabase } from "../setup/postgres.ts";
import { hashEmbedder } from "../support/hash-embedder.mjs";
import { killProcess } from "../support/processes.ts";
import { longDescription, TOPICS } from "./long-records.ts";

const RECORDS = 40;
const MODEL = { model: "first", dimension: 64 };
const projectPath = "/srv/long";
const ref = { projectPath, collection: "checkpoints" as const };

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const undo of cleanUp.splice(0).reverse()) await undo();
});

describe.each(["sqlite", ...(postgresWanted ? ["postgres"] : [])])("the backfill of long records on %s", (kind) => {
  it("has every piece exactly once after kill -9s, and embeds no stored piece again", { timeout: 300_000 }, async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "cairn-pieces-"));
    cleanUp.push(() => rmSync(dataDir, { recursive: true, force: true }));
    let storage = kind;
    if (kind === "postgres") {
      const database = await testDatabase();
      cleanUp.push(() => database.drop());
      storage = database.url;
    }
    // The vectors of the parts are left to another process: this one closes with a model that does not answer any more.
    const model = hashEmbedder(MODEL);
    let down = false;
    const failing = { ...model, embed: (texts: readonly string[]) => (down ? Promise.reject(new Error("down")) : model.embed(texts)) };
    const writer = await open({ storage, dataDir, embedder: [failing] });
    const saved = await Promise.all(
      Array.from({ length: RECORDS }, (_, index) =>
        writer.checkpoints.save({
          projectPath,
          summary: `record ${index}`,
          description: longDescription(TOPICS.map((topic) => `${topic}${index}`)),
        }),
      ),
    );
    down = true;
    const pieces = saved.map((record) => splitPieces(checkpointText(record)));
    const parts = pieces.reduce((sum, { length }) => sum + length - 1, 0);
    const [before] = await writer.embeddings.list(ref);
    expect(before).toMatchObject({ records: RECORDS, vectors: RECORDS, parts, partVectors: 0 });
    await writer.close();

    const order = { storage, dataDir, projectPath, embedder: { ...MODEL, paceMs: 150 } };
    let stored = 0;
    for (const calls of [2, 4]) {
      const child = start(order);
      await readUntil(child, (lines) => lines.length >= calls);
      await killProcess(child);
      const watcher = await open({ storage, dataDir, embedder: [] });
      const [version] = await watcher.embeddings.list(ref);
      await watcher.close();
      expect(version!.partVectors).toBeGreaterThan(stored);
      expect(version!.partVectors).toBeLessThan(parts);
      stored = version!.partVectors;
    }
    const lines = await readUntil(start(order), (all) => all.at(-1)?.complete === true);
    expect(lines.reduce((sum, { texts = 0 }) => sum + texts, 0)).toBe(parts - stored);

    const reader = await open({ storage, dataDir, embedder: [model] });
    cleanUp.push(() => reader.close());
    expect((await reader.embeddings.list(ref))[0]).toMatchObject({ records: RECORDS, vectors: RECORDS, parts, partVectors: parts });
    expect(await reader.embeddings.verify(ref)).toMatchObject({ checked: RECORDS + parts, damaged: [], recomputed: 0, missing: 0 });
    for (const index of [0, RECORDS - 1]) {
      const { hits } = await reader.checkpoints.search({ projectPath, query: pieces[index]![1]!, mode: "semantic", topK: 1 });
      expect(hits[0]).toMatchObject({ record: { id: saved[index]!.id } });
      expect(hits[0]!.score).toBeCloseTo(1, 5);
    }
  });
});

interface Line {
  readonly texts?: number;
  readonly complete?: boolean;
}

function start(order: object): ChildProcess {
  const child = spawn(process.execPath, [join(import.meta.dirname, "backfill-process.mjs"), JSON.stringify(order)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  cleanUp.push(() => killProcess(child));
  return child;
}

async function readUntil(child: ChildProcess, enough: (lines: readonly Line[]) => boolean): Promise<Line[]> {
  const lines: Line[] = [];
  for await (const line of createInterface({ input: child.stdout! })) {
    lines.push(JSON.parse(line));
    if (enough(lines)) return lines;
  }
  throw new Error(`The process ended too early, after ${JSON.stringify(lines.at(-1))}`);
}
