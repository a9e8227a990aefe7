import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { openHashCache } from "../../src/client/files/hash-cache.ts";
import { embeddedTarget } from "../../src/client/jobs/index-target.ts";
import { indexTree } from "../../src/client/jobs/index-tree.ts";
import { tally } from "../../src/client/jobs/tally.ts";
import { type Cairn, open } from "../../src/index.ts";
import { projectDatabaseName } from "../../src/model/ids.ts";

const first = "/home/me/app";
const second = "/home/me/app-worktree";
const FILES = Array.from({ length: 10 }, (_, index) => ({
  path: `src/part${index}.ts`,
  content: `export function part${index}(input: string) {\n  return input.padEnd(${index}, "wombat");\n}\n`,
}));
const contentOf = ({ path, content }: { path: string; content: string }) => ({
  path,
  contentHash: createHash("sha256").update(content).digest("hex"),
});

async function openCairn() {
  const dataDir = mkdtempSync(join(tmpdir(), "cairn-seed-"));
  const cairn = await open({ dataDir, embedder: { kind: "static" } });
  onTestFinished(async () => {
    await cairn.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
  return { cairn, dataDir, codeFile: (path: string) => join(dataDir, "projects", `${projectDatabaseName(path)}.code.db`) };
}

it("takes over the index of another clone, with its vectors, and indexes nothing again", async () => {
  const { cairn, codeFile } = await openCairn();
  await cairn.code.indexBatch({ projectPath: first, files: FILES });
  const files = FILES.map(contentOf);
  expect(await cairn.code.seed({ projectPath: second, sample: files, list: async () => files })).toEqual({ files: 10 });
  const { lastIndexedAt: _, ...stats } = await cairn.code.stats({ projectPath: second });
  expect(stats).toMatchObject({ files: 10, chunks: 10, embeddings: [{ vectors: 10 }] });
  const { files: outcomes, embeddedTexts } = await cairn.code.indexBatch({ projectPath: second, files: FILES });
  expect([new Set(outcomes.map(({ status }) => status)), embeddedTexts]).toEqual([new Set(["unchanged"]), 0]);
  const [one, two] = await Promise.all([first, second].map((projectPath) => cairn.code.search({ projectPath, query: "pad a part" })));
  const cosines = (answer: typeof one) => answer!.hits.map(({ path, found }) => `${path} ${found.semantic?.score}`).sort();
  expect(cosines(two)).toEqual(cosines(one));
  expect(await cairn.code.compact({ projectPath: second })).toMatchObject({ orphans: { rows: 0, terms: 0, vectors: 0 } });
  expect(unfinished(codeFile(second))).toEqual([]);
  // An edit afterwards is indexed as usual.
  const edited = { ...FILES[0]!, content: "export const numbat = 1;\n" };
  expect((await cairn.code.indexBatch({ projectPath: second, files: [edited] })).files).toMatchObject([{ status: "indexed" }]);
  expect((await cairn.code.search({ projectPath: second, query: "numbat" })).hits[0]).toMatchObject({ path: "src/part0.ts" });
});

it("takes over only files that the caller has, and leaves no byte of another one", async () => {
  const { cairn, codeFile } = await openCairn();
  const secret = { path: "src/private.ts", content: "export const zebraquagga = 'zebraquagga';\n" };
  const changed = { ...FILES[1]!, content: "export const changed = 1;\n" };
  await cairn.code.indexBatch({ projectPath: first, files: [...FILES, secret] });
  const files = FILES.map((file) => (file.path === changed.path ? changed : file)).map(contentOf);
  expect(await cairn.code.seed({ projectPath: second, sample: files, list: async () => files })).toEqual({ files: 9 });
  expect((await cairn.code.search({ projectPath: second, query: "zebraquagga", mode: "keyword" })).hits).toEqual([]);
  expect(await cairn.code.hashes({ projectPath: second, paths: [secret.path, changed.path] })).toEqual({});
  expect(await cairn.code.compact({ projectPath: second })).toMatchObject({ orphans: { rows: 0, terms: 0, vectors: 0 } });
  await cairn.close();
  const bytes = [codeFile(first), codeFile(second)].map((path) => readFileSync(path).includes("zebraquagga"));
  expect(bytes).toEqual([true, false]);
});

it("leaves no byte of a file that the other project had removed earlier", async () => {
  const { cairn, codeFile } = await openCairn();
  const secret = { path: "src/private.ts", content: "export const zebraquagga = 'zebraquagga';\n" };
  await cairn.code.indexBatch({ projectPath: first, files: [...FILES, secret] });
  await cairn.code.finish({ projectPath: first, manifest: FILES.map(({ path }) => path) });
  const files = FILES.map(contentOf);
  expect(await cairn.code.seed({ projectPath: second, sample: files, list: async () => files })).toEqual({ files: 10 });
  await cairn.close();
  const bytes = [codeFile(first), codeFile(second)].map((path) => readFileSync(path).includes("zebraquagga"));
  expect(bytes).toEqual([true, false]);
});

it("copies nothing from an index that has other files, is damaged or would replace an index", async () => {
  const { cairn, codeFile } = await openCairn();
  await cairn.code.indexBatch({ projectPath: first, files: FILES.slice(0, 5) });
  const files = FILES.map(contentOf);
  const seed = (projectPath: string) => cairn.code.seed({ projectPath, sample: files, list: async () => files });
  expect(await seed(second)).toEqual({ files: 0 });
  expect(existsSync(codeFile(second))).toBe(false);
  await cairn.code.indexBatch({ projectPath: first, files: FILES.slice(5) });
  writeFileSync(codeFile("/home/me/damaged"), "not a database");
  expect(await seed(second)).toEqual({ files: 10 });
  expect(await seed(second)).toEqual({ files: 0 });
});

const unfinished = (codeFile: string) => readdirSync(dirname(codeFile)).filter((name) => name.startsWith(`${basename(codeFile)}.seed`));

it.each<[string, (cairn: Cairn) => Promise<unknown>]>([
  ["the deletion of the project", (cairn) => cairn.databases.delete({ projectPath: second, confirm: second })],
  [
    "the next attempt, even if it has nothing to copy",
    (cairn) => cairn.code.seed({ projectPath: second, sample: [], list: async () => [] }),
  ],
  ["the first file that is indexed", (cairn) => cairn.code.indexBatch({ projectPath: second, files: FILES })],
])("removes the unfinished copy of a killed process: %s", async (_, act) => {
  const { cairn, codeFile } = await openCairn();
  await cairn.checkpoints.save({ projectPath: second, summary: "Begun" });
  for (const end of ["", "-wal", "-shm"]) writeFileSync(`${codeFile(second)}.seed-b7${end}`, "half of an index");
  expect(unfinished(codeFile(second))).toHaveLength(3);
  await act(cairn);
  expect(unfinished(codeFile(second))).toEqual([]);
});

it("publishes one complete copy if two attempts run at the same time, and none of another process", async () => {
  const { cairn, codeFile } = await openCairn();
  await cairn.code.indexBatch({ projectPath: first, files: FILES });
  const files = FILES.map(contentOf);
  const list = async () => {
    writeFileSync(`${codeFile(second)}.seed`, "half of an index");
    return files;
  };
  const attempts = await Promise.all([1, 2].map(() => cairn.code.seed({ projectPath: second, sample: files, list })));
  expect(attempts.map((attempt) => attempt.files).sort()).toEqual([0, 10]);
  expect(await cairn.code.stats({ projectPath: second })).toMatchObject({ files: 10, chunks: 10, embeddings: [{ vectors: 10 }] });
  expect(unfinished(codeFile(second))).toEqual([]);
});

it("copies nothing next to the write-ahead log of a lost index", async () => {
  const { cairn, codeFile } = await openCairn();
  await cairn.code.indexBatch({ projectPath: first, files: FILES });
  writeFileSync(`${codeFile(second)}-wal`, "frames of an index that is gone");
  const files = FILES.map(contentOf);
  expect(await cairn.code.seed({ projectPath: second, sample: files, list: async () => files })).toEqual({ files: 0 });
  expect(existsSync(codeFile(second))).toBe(false);
});

it("lets the first index job of a second clone send no file", async () => {
  const { cairn, dataDir } = await openCairn();
  const sent: string[] = [];
  const run = async (projectPath: string, reuse: boolean) => {
    const root = join(dataDir, "trees", projectPath);
    for (const { path, content } of FILES) {
      mkdirSync(join(root, path, ".."), { recursive: true });
      writeFileSync(join(root, path), content);
    }
    const embedded = embeddedTarget(cairn.code, projectPath, { reuse });
    const send: typeof embedded.send = (files, signal) => {
      sent.push(...files.map(({ path }) => path));
      return embedded.send(files, signal);
    };
    const counting = tally();
    const cache = await openHashCache(join(dataDir, `${projectDatabaseName(projectPath)}.hashes`), root);
    const { signal } = new AbortController();
    await indexTree({ root, target: { ...embedded, send }, cache, tally: counting, signal, includeIgnored: true });
    return { counts: counting.state().counts, sent: sent.splice(0).length };
  };
  expect(await run(first, true)).toMatchObject({ sent: 10, counts: { indexed: 10 } });
  expect(await run(second, true)).toMatchObject({ sent: 0, counts: { unchanged: 10, indexed: 0 } });
  expect(await run("/home/me/third", false)).toMatchObject({ sent: 10, counts: { indexed: 10 } });
});
