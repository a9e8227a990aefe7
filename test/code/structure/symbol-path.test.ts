import { describe, expect, it } from "vitest";
import { enclosingDefinition, isCall } from "../../../src/code/structure/enclosing-definition.ts";
import { isOwnedBy, matchOwner, readSymbolPath, receiverOf, selectOwned } from "../../../src/code/structure/symbol-path.ts";

describe("a symbol with its owner", () => {
  it.each([
    ["run", { name: "run", owner: undefined }],
    ["JobQueue.run()", { name: "run", owner: "JobQueue" }],
    ["a::b::JobQueue::run", { name: "run", owner: "JobQueue" }],
    ["JobQueue#run(x, y)", { name: "run", owner: "JobQueue" }],
    ["queue->run", { name: "run", owner: "queue" }],
  ])("is read from %s", (symbol, expected) => {
    expect(readSymbolPath(symbol)).toEqual(expected);
  });

  it("is owned by a parent or by its file", () => {
    expect(isOwnedBy("JobQueue", { parents: ["App", "JobQueue"], path: "a.ts" })).toBe(true);
    expect(isOwnedBy("job_queue", { parents: [], path: "src/job-queue.ts" })).toBe(true);
    expect(isOwnedBy("Queue", { parents: ["JobQueue"], path: "a.ts" })).toBe(false);
  });

  it("belongs to a class before a file of the same name, which has other classes too", () => {
    const site = (path: string, ...parents: string[]) => ({ path, parents });
    const own = site("src/queue.ts", "Queue");
    const other = site("src/queue.ts", "Timer");
    const loose = site("src/queue.ts");
    expect(selectOwned("Queue", [other, own])).toEqual([own]);
    expect(selectOwned("queue", [other, own, loose])).toEqual([own, loose]);
    expect(selectOwned("queue", [other])).toEqual([other]);
    expect(selectOwned("Socket", [other, own])).toEqual([]);
  });

  it.each([
    ["this.queue.run()", 12, "queue"],
    ["Queue::run()", 8, "Queue"],
    ["a?.run()", 4, "a"],
    ["make().run()", 8, ""],
    ["run()", 1, undefined],
    ["x = run()", 5, undefined],
  ])("has the receiver before it in %s", (line, column, expected) => {
    expect(receiverOf(line, column)).toBe(expected);
  });

  it("is recognised by its receiver, and otherwise unknown", () => {
    const use = (line: string, enclosing: string[] = []) =>
      matchOwner({ line, column: line.indexOf("run") + 1, enclosing }, "JobQueue", ["Timer"]);
    expect(use("jobQueue.run()")).toBe("owner");
    expect(use("this.run()", ["JobQueue", "start"])).toBe("owner");
    expect(use("this.run()", ["Timer"])).toBe("other");
    expect(use("timer.run()")).toBe("other");
    expect(use("x.run()", ["JobQueue"])).toBe("unknown");
    expect(use("run()")).toBe("unknown");
  });
});

describe("the definition around a line", () => {
  const at = (name: string, line: number, endLine: number, kind: "class" | "method" | "field" = "method") => ({
    ...{ name, kind, line, endLine },
    column: 1,
    parents: [],
  });
  const all = [at("Queue", 1, 20, "class"), at("limit", 2, 2, "field"), at("run", 4, 12), at("inner", 6, 8), at("stop", 14, 15)];

  it.each([
    [1, "Queue"],
    [2, "Queue"],
    [7, "inner"],
    [10, "run"],
    [13, "Queue"],
    [21, undefined],
  ])("of line %i is the innermost one", (line, expected) => {
    expect(enclosingDefinition(all, line)?.name).toBe(expected);
  });

  it.each([
    ["run(x)", "typescript", true],
    ["run<T>(x)", "typescript", true],
    ["run`x`", "typescript", true],
    ["run::<T>(x)", "rust", true],
    ["run!(x)", "rust", true],
    ["run, x", "typescript", false],
    ["run x", "ruby", true],
    ["run { x }", "kotlin", true],
    ["run { x }", "typescript", false],
  ])("is called in %s of %s: %s", (text, language, expected) => {
    expect(isCall({ text, column: 1, language }, "run")).toBe(expected);
  });
});
