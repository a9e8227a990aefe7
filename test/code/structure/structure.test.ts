import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { grep } from "../../../src/code/structure/grep.ts";
import { type Cairn, open } from "../../../src/index.ts";
import { invoke, LOCAL_CALLER } from "../../../src/operations/invoke.ts";
import { servicesOf } from "../../../src/operations/validate-library.ts";
import { memoryStorage } from "../../../src/testing/index.ts";

const projectPath = "/home/me/app";
const FILES: Record<string, string> = {
  "src/retry.ts": "export async function retry(work: () => Promise<void>) {\n  return work();\n}\n",
  "src/queue.ts": `import { retry } from "./retry";\n\nexport class JobQueue {\n  async run(job: () => Promise<void>) {\n    await retry(job);\n    this.stop();\n  }\n  stop() {}\n}\n`,
  "src/timer.ts": `export class Timer {\n  stop() {}\n  tick() {\n    this.stop();\n  }\n}\n`,
  "src/app.ts": `import { JobQueue } from "./queue";\n\nexport function start(jobQueue: JobQueue, x: unknown) {\n  jobQueue.run(load);\n  jobQueue.stop();\n  x.stop();\n}\nasync function load() {}\nstart(new JobQueue(), 0);\n`,
  "src/lamp.ts": `export class Lamp {\n  dim() {}\n  off() { this.dim(); }\n}\nexport class Screen {\n  dim() {}\n  off() { this.dim(); }\n}\nexport function evening(lamp: Lamp) { lamp.dim(); }\nexport function night(screen: Screen) { screen.dim(); }\n`,
  "test/app.test.ts": `import { start } from "../src/app";\n\nfunction checkStart() {\n  start(undefined, 1);\n}\n`,
};
let folder: string;
const opened: Cairn[] = [];
const stores = ["memory", "SQLite"] as const;
const cairns: Partial<Record<(typeof stores)[number], Cairn>> = {};

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "cairn-structure-"));
  cairns.memory = await open({ storage: "memory", embedder: { kind: "none" } });
  cairns.SQLite = await open({ dataDir: folder, embedder: { kind: "none" } });
  for (const cairn of Object.values(cairns)) {
    opened.push(cairn);
    await cairn.code.indexBatch({ projectPath, files: Object.entries(FILES).map(([path, content]) => ({ path, content })) });
  }
});
afterAll(async () => {
  for (const cairn of opened) await cairn.close();
  rmSync(folder, { recursive: true, force: true });
});

describe.each(stores)("structure queries on %s", (store) => {
  const code = () => cairns[store]!.code;

  it("list the definitions that use a symbol, with the lines, without imports", async () => {
    const { callers } = await code().callers({ projectPath, symbol: "retry" });
    expect(callers).toMatchObject([{ path: "src/queue.ts", name: "run", kind: "method", parents: ["JobQueue"], line: 4, endLine: 7 }]);
    expect(callers[0]!.uses).toEqual([{ line: 5, column: 11, text: "    await retry(job);", call: true }]);
    const start = await code().callers({ projectPath, symbol: "start" });
    expect(start.callers.map(({ path, name, line }) => [path, name, line])).toEqual([
      ["src/app.ts", undefined, 9],
      ["test/app.test.ts", "checkStart", 3],
    ]);
  });

  it("take the stop of a class only where its receiver is that class, and count the others", async () => {
    const { callers, excluded } = await code().callers({ projectPath, symbol: "JobQueue.stop" });
    expect(callers.map(({ path, name, uses }) => [path, name, uses.map(({ line }) => line)])).toEqual([
      ["src/app.ts", "start", [5]],
      ["src/queue.ts", "run", [6]],
    ]);
    expect(excluded).toBe(2);
    const usages = await code().usages({ projectPath, symbol: "Timer.stop" });
    expect(usages.definitions.map(({ path }) => path)).toEqual(["src/timer.ts"]);
    expect(usages.references.map(({ path, line }) => [path, line])).toEqual([["src/timer.ts", 4]]);
    expect(usages).toMatchObject({ totalReferences: 1, excluded: 3, ownerUnknown: false });
    expect(await code().usages({ projectPath, symbol: "Socket.stop" })).toMatchObject({ totalReferences: 4, ownerUnknown: true });
    // Only one class has a `run`, so any receiver means it.
    expect((await code().usages({ projectPath, symbol: "JobQueue.run" })).totalReferences).toBe(1);
  });

  it("take a class for the owner, not the other classes in the file that is named after it", async () => {
    const usages = await code().usages({ projectPath, symbol: "Lamp.dim" });
    expect(usages.definitions.map(({ line, parents }) => [line, parents])).toEqual([[2, ["Lamp"]]]);
    expect(usages.references.map(({ line }) => line)).toEqual([3, 9]);
    const { callers } = await code().callers({ projectPath, symbol: "Lamp.dim" });
    expect(callers.map(({ name }) => name)).toEqual(["off", "evening"]);
    const { hits } = await code().search({ projectPath, query: "Lamp.dim" });
    expect(hits[0]).toMatchObject({ path: "src/lamp.ts" });
  });

  it("list the symbols that a definition uses, with the likely definition first", async () => {
    const { callees } = await code().callees({ projectPath, symbol: "JobQueue.run" });
    expect(callees.map(({ name, definitions }) => [name, definitions[0]!.path])).toEqual([
      ["retry", "src/retry.ts"],
      ["stop", "src/queue.ts"],
    ]);
  });

  it("follow callers to what a change can affect, and mark tests", async () => {
    const { affected } = await code().impact({ projectPath, symbol: "retry", depth: 3 });
    expect(affected.map(({ name, depth, via, test }) => [name, depth, via, test])).toEqual([
      ["run", 1, "retry", false],
      ["start", 2, "JobQueue.run", false],
      [undefined, 3, "start", false],
      ["checkStart", 3, "start", true],
    ]);
    expect((await code().impact({ projectPath, symbol: "retry", depth: 1 })).affected).toHaveLength(1);
    expect(await code().impact({ projectPath, symbol: "retry", limit: 2 })).toMatchObject({ truncated: true });
  });

  it("find a pattern in lines, exactly, with its lines around it", async () => {
    const find = async (pattern: string, more = {}) =>
      (await code().grep({ projectPath, pattern, ...more })).matches.map(({ path, line, column }) => `${path}:${line}:${column}`);
    expect(await find("stop\\(\\)\\s*\\{")).toEqual(["src/queue.ts:8:3", "src/timer.ts:2:3"]);
    expect(await find("this.stop()", { fixed: true, glob: "src/t*" })).toEqual(["src/timer.ts:4:5"]);
    expect(await find("JOBQUEUE", { ignoreCase: true, limit: 1, glob: "src/queue.ts" })).toEqual(["src/queue.ts:3:14"]);
    expect(await find("^export", { languages: ["python"] })).toEqual([]);
    const { matches } = await code().grep({ projectPath, pattern: "retry\\(job\\)", contextLines: 1 });
    expect(matches[0]).toMatchObject({
      text: "  async run(job: () => Promise<void>) {\n    await retry(job);\n    this.stop();",
      textStartLine: 4,
    });
  });

  it("report that an exact search is incomplete", async () => {
    expect(await code().grep({ projectPath, pattern: "stop", limit: 2 })).toMatchObject({
      complete: false,
      reasons: ["there are more than 2 matching lines"],
    });
    expect(await code().grep({ projectPath, pattern: "stop", limit: 6 })).toMatchObject({ complete: true, reasons: [] });
  });
});

describe("an exact search", () => {
  it("stops at its time limit, with what it has found, and reports that", async () => {
    const { code: store } = await (await memoryStorage()).create(projectPath);
    const file = (path: string) => ({ path, contentHash: "0".repeat(64), language: "text", bytes: 4, lines: 1, symbols: [] });
    const chunk = { index: 0, kind: "text" as const, parents: [], defines: [], startLine: 1, endLine: 1, text: "word" };
    await store.commit({
      at: "2026-01-01T00:00:00.000Z",
      files: ["a", "b", "c"].map((path) => ({ ...file(path), chunks: [{ chunk, vectors: [] }] })),
    });
    let time = 0;
    const answer = await grep(store, { pattern: "w.rd", limit: 10 }, { now: () => (time += 10), timeLimitMs: 60 });
    expect(answer.complete).toBe(false);
    expect(answer.reasons[0]).toMatch(/time limit of 0.06 s was reached after \d of 3 files/);
    expect(answer.matches.length).toBeGreaterThan(0);
  });

  it("searches long lines as far as its steps reach, and reports that", async () => {
    const { code: store } = await (await memoryStorage()).create(projectPath);
    const chunk = { index: 0, kind: "text" as const, parents: [], defines: [], startLine: 1, endLine: 1, text: `${"ab ".repeat(20_000)}x` };
    const file = {
      path: "a",
      contentHash: "0".repeat(64),
      language: "text",
      bytes: 4,
      lines: 1,
      symbols: [],
      chunks: [{ chunk, vectors: [] }],
    };
    await store.commit({ at: "2026-01-01T00:00:00.000Z", files: [file] });
    const answer = await grep(store, { pattern: "[a-z]{1,300}x", limit: 10 }, { now: () => performance.now(), timeLimitMs: 60_000 });
    expect(answer).toMatchObject({
      matches: [],
      complete: false,
      reasons: [expect.stringContaining("1 lines were searched up to character")],
    });
    const fixed = await grep(store, { pattern: "x", fixed: true, limit: 10 }, { now: () => performance.now(), timeLimitMs: 60_000 });
    expect(fixed).toMatchObject({ complete: true, matches: [{ column: 60_001 }] });
    expect(fixed.matches[0]!.text.length).toBeLessThan(600);
  });
});

describe("the structure operations", () => {
  const call = async (name: string, input: object) => {
    const { operations } = await import("../../../src/operations/list.ts");
    const operation = operations.find((one) => one.name === name)!;
    const output = await invoke(servicesOf(cairns.memory!), operation, { project_path: projectPath, ...input }, { caller: LOCAL_CALLER });
    return { output, text: operation.render(output) };
  };

  it("say in every answer that it is syntactic", async () => {
    for (const name of ["code_callers", "code_callees", "code_impact"]) {
      const { text } = await call(name, { symbol: "retry" });
      expect(text, name).toContain("By syntax");
    }
    expect((await call("code_callers", { symbol: "nothing_here" })).text).toContain('No symbol "nothing_here"');
  });

  it("fit into their token budget and name what is missing", async () => {
    const { output } = await call("code_grep", { pattern: "o", max_tokens: 200, limit: 1000 });
    expect(output).toMatchObject({ complete: false, note: expect.stringContaining("more matches exceed max_tokens") });
  });
});
