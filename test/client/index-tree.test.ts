import { mkdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type HashCache, openHashCache } from "../../src/client/files/hash-cache.ts";
import { embeddedTarget, type IndexTarget, withRetry } from "../../src/client/jobs/index-target.ts";
import { type IndexTreeOptions, indexTree } from "../../src/client/jobs/index-tree.ts";
import { tally } from "../../src/client/jobs/tally.ts";
import { CairnError } from "../../src/model/errors.ts";
import { open } from "../../src/open/open.ts";
import type { Cairn } from "../../src/operations/cairn.ts";
import { type TestEmbedder, testEmbedder } from "../support/embedders.ts";
import { tree } from "./tree.ts";

const projectPath = "/home/me/app";
let planted: ReturnType<typeof tree>;
let root: string;
let cairn: Cairn;
let embedder: TestEmbedder;
/** The paths of every batch that was sent. */
let sent: string[][];

beforeEach(async () => {
  planted = tree();
  root = join(planted.root, "tree");
  mkdirSync(root);
  embedder = testEmbedder();
  cairn = await open({ storage: "memory", embedder: [embedder] });
  sent = [];
});
afterEach(async () => {
  await cairn.close();
  planted.remove();
});

const old = new Date(Date.now() - 60_000);
/** Written a while ago, as most files are. */
function write(path: string, content: string | Uint8Array): void {
  mkdirSync(join(root, path, ".."), { recursive: true });
  writeFileSync(join(root, path), content);
  utimesSync(join(root, path), old, old);
}
const source = (name: string) => `def ${name}():\n    return "${name}"\n`;

function target(change: Partial<IndexTarget> = {}): IndexTarget {
  const embedded = embeddedTarget(cairn.code, projectPath);
  return {
    ...embedded,
    send(files, signal) {
      sent.push(files.map(({ path }) => path));
      return embedded.send(files, signal);
    },
    ...change,
  };
}

const cache = () => openHashCache(join(planted.root, "cache"), root);
async function pass(options: Partial<IndexTreeOptions> & { cache?: HashCache } = {}) {
  sent = [];
  const counting = tally();
  const signal = new AbortController().signal;
  await indexTree({ root, target: target(), cache: await cache(), tally: counting, signal, ...options });
  return counting.state();
}
const indexed = async () => Object.keys(await cairn.code.hashes({ projectPath, paths: await allPaths() })).sort();
const allPaths = async () => (await cairn.code.context({ projectPath, symbol: "f", limit: 100 })).map(({ path }) => path);

describe("indexTree", () => {
  it("sends all files in batches limited by files and bytes, and none the next time", async () => {
    for (let n = 0; n < 23; n++) write(`src/f${String(n).padStart(2, "0")}.py`, source(`f${n}`));
    const first = await pass();
    expect(first).toMatchObject({ filesProcessed: 23, filesTotal: 23, counts: { indexed: 23, unchanged: 0, failed: 0 } });
    expect(sent.map((batch) => batch.length)).toEqual([10, 10, 3]);
    expect((await pass()).counts).toMatchObject({ indexed: 0, unchanged: 23 });
    expect(sent).toEqual([]);
    for (const name of ["a", "b", "c"]) write(`big/${name}.py`, source(name).repeat(3));
    await pass({ batchBytes: 100 });
    expect(sent).toEqual([["big/a.py"], ["big/b.py"], ["big/c.py"]]);
  });

  it("asks the index, not the hash cache, whether a file is indexed", async () => {
    write("a.py", source("a"));
    await pass();
    await cairn.code.clean({ projectPath });
    expect((await pass()).counts).toMatchObject({ indexed: 1 });
  });

  it("detects a change that keeps the size and sets the modification time back", async () => {
    write("a.py", "x = 1\n");
    await pass();
    const before = statSync(join(root, "a.py"));
    write("a.py", "x = 2\n");
    expect(statSync(join(root, "a.py")).mtimeMs).toBe(before.mtimeMs);
    expect((await pass()).counts).toMatchObject({ indexed: 1 });
  });

  it("does not read a file whose size and times have not changed", async () => {
    write("a.py", source("a"));
    const remembered = await cache();
    // The file's times are of just now where it matters, so that it is not trusted yet; after a while it would be.
    const { size: sizeBytes, mtimeMs, ctimeMs } = statSync(join(root, "a.py"));
    const stat = { sizeBytes, mtimeMs, ctimeMs };
    remembered.set("a.py", { ...stat, readAtMs: Date.now() }, { hash: "0".repeat(64) });
    expect(remembered.get("a.py", stat)).toBeUndefined();
    remembered.set("a.py", { ...stat, readAtMs: Date.now() + 10_000 }, { hash: "0".repeat(64) });
    const known = target({ hashes: async () => new Map([["a.py", "0".repeat(64)]]) });
    expect((await pass({ cache: remembered, target: known })).counts).toMatchObject({ unchanged: 1, indexed: 0 });
  });

  it("hashes a file once: the embedded index reuses the hash, and verifies the hash of any other sender", async () => {
    const file = { path: "a.py", content: source("a"), hash: "0".repeat(64) };
    await embeddedTarget(cairn.code, projectPath).send([file], new AbortController().signal);
    expect(await cairn.code.hashes({ projectPath, paths: ["a.py"] })).toEqual({ "a.py": file.hash });
    const { files } = await cairn.code.indexBatch({ projectPath, files: [{ ...file, path: "b.py" }] });
    expect(files).toMatchObject([{ path: "b.py", status: "failed", reason: expect.stringContaining("hash") }]);
  });

  it("makes no embedding call when a folder of 500 files is renamed", async () => {
    for (let n = 0; n < 500; n++) write(`before/part${n % 7}/f${n}.py`, source(`function_${n}`));
    await pass();
    const calls = embedder.calls;
    expect(calls).toBeGreaterThan(0);
    renameSync(join(root, "before"), join(root, "after"));
    const { counts } = await pass();
    expect({ ...counts, calls: embedder.calls }).toMatchObject({ indexed: 0, renamed: 500, removed: 0, calls });
    expect(await cairn.code.stats({ projectPath })).toMatchObject({ files: 500 });
    expect((await cairn.code.context({ projectPath, symbol: "function_3" })).map(({ path }) => path)).toEqual(["after/part3/f3.py"]);
  });

  it("reports a file with an invalid encoding, tries it in every job, and keeps its indexed version", async () => {
    write("good.py", source("good"));
    write("bad.py", source("was_good"));
    await pass();
    write("bad.py", Buffer.from([0x64, 0xff, 0xfe, 0x0a]));
    for (let time = 0; time < 2; time++) {
      const { counts, failedFiles, filesProcessed } = await pass();
      expect(counts).toMatchObject({ failed: 1, unchanged: 1, removed: 0 });
      expect(failedFiles).toEqual([{ path: "bad.py", reason: "encoding: the content is not valid UTF-8" }]);
      expect(filesProcessed).toBe(2);
    }
    expect(await cairn.code.context({ projectPath, symbol: "was_good" })).toHaveLength(1);
    write("bad.py", source("repaired"));
    expect((await pass()).counts).toMatchObject({ failed: 0, indexed: 1 });
  });

  it("retries a file after a parser timeout, and never treats it as unchanged", async () => {
    write("slow.py", source("slow"));
    write("quick.py", source("quick"));
    let tries = 0;
    const embedded = target();
    // What the index says of a file whose parser timed out; it also keeps no hash of it.
    const giveUp = (times: number): IndexTarget => ({
      ...embedded,
      async hashes(paths, signal) {
        const hashes = new Map(await embedded.hashes(paths, signal));
        hashes.delete("slow.py");
        return hashes;
      },
      async send(files, signal) {
        const outcomes = await embedded.send(files, signal);
        return outcomes.map((outcome) => {
          if (outcome.path !== "slow.py" || ++tries > times) return outcome;
          return { path: "slow.py", status: "partial", reason: "Cut by lines, because the parser took longer than 5000 ms." };
        });
      },
    });
    const first = await pass({ target: giveUp(99) });
    expect(first.counts).toMatchObject({ indexed: 1, failed: 1 });
    expect(first.failedFiles).toEqual([{ path: "slow.py", reason: expect.stringContaining("took longer"), searchable: true }]);
    expect(tries).toBe(2);
    tries = 0;
    expect((await pass({ target: giveUp(1) })).counts).toMatchObject({ unchanged: 2, failed: 0 });
    expect(tries).toBe(2);
  });

  it("finds the file that made the target reject a batch", async () => {
    for (const name of ["a", "b", "c"]) write(`${name}.py`, source(name));
    const embedded = target();
    const picky = target({
      async send(files, signal) {
        if (files.some(({ path }) => path === "b.py")) throw new CairnError("invalid_input", "b.py is not liked");
        return embedded.send(files, signal);
      },
    });
    const { counts, failedFiles } = await pass({ target: picky });
    expect(counts).toMatchObject({ indexed: 2, failed: 1 });
    expect(failedFiles).toEqual([{ path: "b.py", reason: "b.py is not liked" }]);
  });

  it("removes deleted files, but no file in a folder that cannot be read", async () => {
    for (const path of ["kept.py", "gone.py", "locked/in.py"]) write(path, source("f"));
    const remembered = await cache();
    await pass({ cache: remembered });
    rmSync(join(root, "gone.py"));
    // Just before it is entered, the folder is taken away, as a disk in the network may be.
    const { counts } = await pass({
      cache: remembered,
      onFolder: (folder) => folder.endsWith("locked") && rmSync(folder, { recursive: true }),
    });
    expect(counts).toMatchObject({ removed: 1, failed: 1 });
    expect(await indexed()).toEqual(["kept.py", "locked/in.py"]);
  });

  it("does not change the index when the tree is unreadable or empty", async () => {
    write("a.py", source("f"));
    await pass();
    rmSync(join(root, "a.py"));
    expect((await pass()).counts).toMatchObject({ removed: 0 });
    rmSync(root, { recursive: true });
    await expect(pass()).rejects.toMatchObject({ code: "not_found" });
    expect(await indexed()).toEqual(["a.py"]);
  });

  it("caches which files are not indexable", async () => {
    write("made.js", "// Code generated by protoc. DO NOT EDIT.\nlet a;\n");
    write("picture.txt", Buffer.from([1, 0, 2, 0]));
    for (let time = 0; time < 2; time++) {
      const { skipped, filesProcessed } = await pass();
      expect({ skipped, filesProcessed }).toEqual({ skipped: { generated: 1, binary: 1 }, filesProcessed: 2 });
    }
    write("made.js", source("f"));
    expect((await pass()).counts).toMatchObject({ indexed: 1 });
  });

  it("retries an unavailable target, and gives up after the time limit", async () => {
    write("a.py", source("f"));
    let failures = 5;
    const embedded = target();
    const flaky = target({
      async send(files, signal) {
        if (failures-- > 0) throw new CairnError("unavailable", "starting", { retryAfterMs: 1 });
        return embedded.send(files, signal);
      },
    });
    expect((await pass({ target: withRetry(flaky, { firstPauseMs: 1 }) })).counts).toMatchObject({ indexed: 1 });
    const dead = target({ send: () => Promise.reject(new CairnError("unavailable", "dead")) });
    write("a.py", source("g"));
    await expect(pass({ target: withRetry(dead, { firstPauseMs: 1, giveUpAfterMs: 50 }) })).rejects.toMatchObject({
      code: "unavailable",
      message: "dead",
    });
  });

  it("ends when it is stopped, with no batch in progress", async () => {
    for (let n = 0; n < 60; n++) write(`f${n}.py`, source(`f${n}`));
    const stop = new AbortController();
    let running = 0;
    const embedded = target();
    const watched = target({
      async send(files, signal) {
        running++;
        if (sent.length === 2) stop.abort();
        try {
          return await embedded.send(files, signal);
        } finally {
          running--;
        }
      },
    });
    await expect(pass({ target: watched, signal: stop.signal })).rejects.toMatchObject({ name: /AbortError|CairnError/ });
    expect(running).toBe(0);
    expect((await pass()).counts).toMatchObject({ indexed: expect.any(Number), failed: 0 });
    expect(await cairn.code.stats({ projectPath })).toMatchObject({ files: 60 });
  });

  it("holds no more batches in memory than may be in progress", async () => {
    for (let n = 0; n < 100; n++) write(`f${n}.py`, source(`f${n}`));
    let running = 0;
    let most = 0;
    let full = () => {};
    const isFull = new Promise<void>((resolve) => {
      full = resolve;
    });
    const slow = target({
      atOnce: 3,
      async send(files) {
        most = Math.max(most, ++running);
        if (running === 3) setTimeout(full, 50); // a fourth would come meanwhile
        await isFull;
        running--;
        return files.map(({ path }) => ({ path, status: "indexed" as const, chunks: 1 }));
      },
    });
    await pass({ target: slow });
    expect(most).toBe(3);
  });

  it("reads every file again when the hash cache is damaged", async () => {
    write("a.py", source("f"));
    await pass();
    for (const content of ["", "{", '{"version":1}', "\0"]) {
      writeFileSync(join(planted.root, "cache"), content);
      expect((await pass()).counts).toMatchObject({ unchanged: 1 });
    }
    expect(JSON.parse(readFileSync(join(planted.root, "cache"), "utf8"))).toMatchObject({ version: 1, root });
  });

  it("sends many new files without vectors, finishes, and then embeds them; few files come with their vectors", async () => {
    const steps: string[] = [];
    const bulk = target({
      async send(files, _, options) {
        steps.push(options?.vectors ?? "with vectors");
        return files.map(({ path }) => ({ path, status: "indexed" as const, chunks: 1 }));
      },
      async finish() {
        steps.push("finish");
        return { removed: 0, renamed: 0 };
      },
      counts: async () => ({ files: 200, chunks: 200 }),
      async embedPending(_, progress) {
        steps.push("embed");
        progress(3, 7);
      },
    });
    for (let n = 0; n < 199; n++) write(`many/f${n}.py`, source(`f${n}`));
    await pass({ target: bulk });
    expect([...new Set(steps)]).toEqual(["with vectors", "finish", "embed"]);
    write("many/one-more.py", source("one_more"));
    steps.length = 0;
    const { phase } = await pass({ target: bulk });
    expect([...new Set(steps)]).toEqual(["later", "finish", "embed"]);
    expect(phase).toBe("embedding: 3 of 7 chunks; keyword search is complete");
  });
});
