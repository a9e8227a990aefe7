import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import type { SqliteTx } from "../../../src/stores/sqlite/driver/driver.ts";
import { findCollection } from "../../../src/stores/sqlite/vectors/collection.ts";
import type { RepairReport } from "../../../src/stores/sqlite/vectors/rebuild.ts";
import { searchVectors } from "../../../src/stores/sqlite/vectors/search.ts";
import { vectorSearcher } from "../../../src/stores/sqlite/vectors/searcher.ts";
import { vectorWriter } from "../../../src/stores/sqlite/vectors/writer.ts";
import { vectorReader } from "./read-vectors.ts";
import { bruteForce, openVectors, problems, temporaryFile, vectorOf, vectorsOf } from "./support.ts";

const DIMENSION = 384;
const started: ChildProcess[] = [];
afterEach(() => {
  for (const child of started.splice(0)) child.kill("SIGKILL");
});

describe("codes that were damaged", () => {
  const damages: [string, (tx: SqliteTx) => void, RegExp][] = [
    [
      "a byte of a segment flipped",
      (tx) => {
        const { id, codes } = tx.get<{ id: number; codes: Uint8Array }>("SELECT id, codes FROM vector_segment_bodies LIMIT 1")!;
        codes[1000]! ^= 64;
        tx.run("UPDATE vector_segment_bodies SET codes = ? WHERE id = ?", codes, id);
      },
      /checksum of segment \d+ does not match/,
    ],
    [
      "a key of a segment changed",
      (tx) => {
        const { id, keys } = tx.get<{ id: number; keys: Uint8Array }>("SELECT id, keys FROM vector_segment_bodies LIMIT 1")!;
        keys[4]! ^= 1;
        tx.run("UPDATE vector_segment_bodies SET keys = ? WHERE id = ?", keys, id);
      },
      /checksum of segment \d+ does not match/,
    ],
    ["a segment cut short", (tx) => tx.exec("UPDATE vector_segment_bodies SET codes = substr(codes, 1, 5000)"), /has not the size/],
    ["a segment's body missing", (tx) => tx.exec("DELETE FROM vector_segment_bodies WHERE id = 1"), /Segment 1 is missing/],
    ["a segment missing altogether", (tx) => tx.exec("DELETE FROM vector_segments WHERE id = 1"), /2000 vectors but codes for \d+/],
    ["all segments missing", (tx) => tx.exec("DELETE FROM vector_segments"), /2000 vectors but codes for 0/],
    ["a vector removed behind their back", (tx) => tx.exec("DELETE FROM vectors WHERE key = 77"), /1999 vectors but codes for 2000/],
  ];

  it.each(damages)("%s: are noticed, made again from the vectors, and reported", async (_, damage, reason) => {
    const path = temporaryFile();
    const database = await openVectors(path);
    await database.write((tx) => vectorWriter(tx).put("c", 1, vectorsOf(0, 2_000, DIMENSION)));
    await database.write((tx) => vectorWriter(tx).put("other", 1, vectorsOf(0, 10, DIMENSION)));
    await database.write(damage);

    const reports: RepairReport[] = [];
    const searcher = vectorSearcher({ path, onRepair: (report) => reports.push(report) });
    onTestFinished(() => searcher.close());
    const query = vectorOf(77, DIMENSION);
    const found = await searcher.search({ collection: "c", versionId: 1, query, limit: 10 });
    const stored = database.read((tx) => {
      const reader = vectorReader(tx);
      return new Map(
        vectorsOf(0, 2_000, DIMENSION)
          .filter(({ key }) => reader.get("c", 1, key))
          .map(({ key, vector }) => [key, vector]),
      );
    });
    expect(found.map(({ key }) => key)).toEqual(bruteForce(stored, query, 10).map(({ key }) => key));
    expect(reports).toEqual([{ collection: "c", versionId: 1, reason: expect.stringMatching(reason), rebuilt: stored.size, lost: [] }]);
    expect(problems(database)).toEqual([]);
    expect(problems(database, "other")).toEqual([]);
    await searcher.search({ collection: "c", versionId: 1, query, limit: 10 });
    expect(reports).toHaveLength(1);
  });

  it("are noticed by a writer too, who makes them again in the same transaction", async () => {
    const database = await openVectors(temporaryFile());
    await database.write((tx) => vectorWriter(tx).put("c", 1, vectorsOf(0, 2_000, DIMENSION)));
    await database.write((tx) => tx.exec("UPDATE vector_segment_bodies SET scales = zeroblob(length(scales))"));
    const reports: RepairReport[] = [];
    const changed = vectorsOf(0, 2_000, DIMENSION).map(({ key }) => ({ key, vector: vectorOf(key + 1, DIMENSION) }));
    await database.write((tx) => vectorWriter(tx, { onRepair: (report) => reports.push(report) }).put("c", 1, changed));
    expect(reports).toMatchObject([{ rebuilt: 2_000, lost: [], reason: expect.stringMatching(/checksum/) }]);
    expect(problems(database)).toEqual([]);
  });

  it("do not hide a vector that is itself damaged: it is removed, so that it counts as not embedded", async () => {
    const path = temporaryFile();
    const database = await openVectors(path);
    await database.write((tx) => vectorWriter(tx).put("c", 1, vectorsOf(0, 1_000, DIMENSION)));
    await database.write((tx) => {
      tx.run("UPDATE vectors SET vector = substr(vector, 1, 100) WHERE key = 5");
      tx.run("UPDATE vectors SET vector = zeroblob(length(vector)) WHERE key = 25");
    });
    const reports: RepairReport[] = [];
    const searcher = vectorSearcher({ path, onRepair: (report) => reports.push(report) });
    onTestFinished(() => searcher.close());
    const hits = await searcher.search({ collection: "c", versionId: 1, query: vectorOf(5, DIMENSION), limit: 40 });
    expect(reports).toMatchObject([{ rebuilt: 998, lost: [5, 25] }]);
    expect(hits.map(({ key }) => key)).not.toContain(5);
    expect(database.read((tx) => vectorReader(tx).count("c", 1))).toBe(998);
    expect(problems(database)).toEqual([]);
  });

  it("are not needed for a right answer", async () => {
    const database = await openVectors(temporaryFile());
    await database.write((tx) => vectorWriter(tx).put("c", 1, vectorsOf(0, 3_000, 32)));
    const model = new Map(vectorsOf(0, 3_000, 32).map(({ key, vector }) => [key, vector]));
    const vector = vectorOf(9, 32);
    const allow = Int32Array.from({ length: 300 }, (_, i) => i * 10);
    const slow = (filter?: Int32Array) =>
      database.read((tx) => searchVectors(tx, findCollection(tx, "c", 1)!, { vector, limit: 20, allow: filter }).map(({ key }) => key));
    expect(slow()).toEqual(bruteForce(model, vector, 20).map(({ key }) => key));
    expect(slow(allow)).toEqual(bruteForce(model, vector, 20, new Set(allow)).map(({ key }) => key));
  });
});

describe("several processes", () => {
  it("see each other's commits at once, while both write", async () => {
    const path = temporaryFile();
    const database = await openVectors(path);
    const searcher = vectorSearcher({ path, onRepair: (report) => expect.fail(report.reason) });
    onTestFinished(() => searcher.close());
    const child = startWriter(path, 20);
    let seen = 0;
    for await (const line of createInterface({ input: child.stdout! })) {
      const round = Number(line);
      // Each process replaces the same keys; the other's newest mark must be there whenever its commit was announced.
      const [marks] = await Promise.all([
        searcher.search({ collection: "marks", versionId: 1, query: Float32Array.from([1, 1]), limit: 1000 }),
        database.write((tx) => vectorWriter(tx).put("c", 1, vectorsOf(round * 20, round * 20 + 300, 64))),
      ]);
      expect(marks.map(({ key }) => key)).toContain(1_000_000 + round);
      const hits = await searcher.search({ collection: "c", versionId: 1, query: vectorOf(round * 20, 64), limit: 10 });
      expect(hits).toHaveLength(10);
      seen = round;
    }
    expect(seen).toBe(20);
    expect(problems(database)).toEqual([]);
    expect(problems(database, "marks")).toEqual([]);
  });

  it("leave vectors and codes in step when killed at any moment", async () => {
    const path = temporaryFile();
    const database = await openVectors(path);
    const searcher = vectorSearcher({ path, listsAbove: 500, onRepair: (report) => expect.fail(report.reason) });
    onTestFinished(() => searcher.close());
    let announced = 0;
    for (let kill = 0; kill < 8; kill++) {
      const child = startWriter(path, 1_000_000, kill % 2 === 1);
      const lines = createInterface({ input: child.stdout! });
      lines.on("line", () => announced++);
      await once(lines, "line");
      await sleep(5 + kill * 31);
      child.kill("SIGKILL");
      await once(child, "exit");
      expect(problems(database)).toEqual([]);
      expect(problems(database, "marks")).toEqual([]);
      const hits = await searcher.search({ collection: "c", versionId: 1, query: vectorOf(kill, 64), limit: 5 });
      expect(hits).toHaveLength(5);
    }
    expect(announced).toBeGreaterThanOrEqual(8);
  });
});

describe("the scanning thread", () => {
  it("does not keep a process alive, and an answer that is waited for still comes", async () => {
    const path = temporaryFile();
    const database = await openVectors(path);
    await database.write((tx) => vectorWriter(tx).put("c", 1, vectorsOf(0, 100, 64)));
    const script = `
      const { vectorSearcher } = await import(${JSON.stringify(new URL("../../../dist/stores/sqlite/vectors/searcher.js", import.meta.url).href)});
      const searcher = vectorSearcher({ path: ${JSON.stringify(path)} });
      const hits = await searcher.search({ collection: "c", versionId: 1, query: new Float32Array(64).fill(1), limit: 3 });
      console.log("found " + hits.length);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "inherit"] });
    started.push(child);
    const output = child.stdout!.setEncoding("utf8").toArray();
    const [code] = await once(child, "exit");
    expect(code).toBe(0);
    expect((await output).join("")).toBe("found 3\n");
  });
});

function startWriter(path: string, rounds: number, building = false): ChildProcess {
  const script = join(import.meta.dirname, "writer-process.mjs");
  const child = spawn(process.execPath, [script, path, "64", String(rounds), ...(building ? ["building"] : [])], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  started.push(child);
  return child;
}
