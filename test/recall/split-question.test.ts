import { describe, expect, it } from "vitest";
import { splitQuestion } from "../../src/text/split-question.ts";

const ISSUE = `# Queue stops after a failed job

When a job fails, the queue does not start the next one. I expected \`JobQueue.run\` to continue.
It worked before src/queue/retry.ts was changed.

\`\`\`
TypeError: Cannot read properties of undefined (reading 'delay')
    at retryWithBackoff (/home/me/app/src/queue/retry.ts:12:15)
    at async JobQueue.run (file:///home/me/app/src/queue/job-queue.ts:40:5)
    at node:internal/process/task_queues:95:5
\`\`\`
`;

describe("a long question", () => {
  it("is split into title, prose, names, paths, frames and messages", () => {
    expect(splitQuestion(ISSUE)).toEqual({
      title: "Queue stops after a failed job",
      prose:
        "When a job fails, the queue does not start the next one. I expected `JobQueue.run` to continue.\nIt worked before src/queue/retry.ts was changed.",
      identifiers: ["JobQueue.run", "TypeError"],
      paths: ["src/queue/retry.ts"],
      frames: [
        { path: "/home/me/app/src/queue/retry.ts", line: 12, symbol: "retryWithBackoff" },
        { path: "/home/me/app/src/queue/job-queue.ts", line: 40, symbol: "run" },
      ],
      errors: ["TypeError: Cannot read properties of undefined (reading 'delay')"],
    });
  });

  it.each([
    ['  File "/srv/app/models.py", line 7, in save', { path: "/srv/app/models.py", line: 7, symbol: "save" }],
    ['  File "setup.py", line 3, in <module>', { path: "setup.py", line: 3 }],
    ["\tat com.shop.Cart.add(Cart.java:31)", { path: "com/shop/Cart.java", line: 31, symbol: "add" }],
    ["   at Shop.Cart.Add(Item item) in C:\\src\\Cart.cs:line 31", { path: "C:/src/Cart.cs", line: 31, symbol: "Add" }],
    ["\t/go/src/app/main.go:88 +0x1d", { path: "/go/src/app/main.go", line: 88 }],
    ["             at ./src/store/mod.rs:10:5", { path: "src/store/mod.rs", line: 10 }],
    ["lib/cart.rb:12:in `add_item'", { path: "lib/cart.rb", line: 12, symbol: "add_item" }],
    ["at new Cart (webpack:///./src/cart.ts:3:1)", { path: "/./src/cart.ts", line: 3, symbol: "Cart" }],
  ])("has the frame of %s", (line, frame) => {
    expect(splitQuestion(`Title of it\n${line}`).frames).toEqual([frame]);
  });

  it("has the innermost Python call first", () => {
    const trace =
      'Traceback (most recent call last):\n  File "a.py", line 1, in outer\n  File "b.py", line 2, in inner\nValueError: bad value';
    const { frames, errors } = splitQuestion(trace);
    expect(frames.map(({ symbol }) => symbol)).toEqual(["inner", "outer"]);
    expect(errors).toEqual(["ValueError: bad value"]);
  });

  it("has the frames of the project's own code, however many frames of its dependencies are before them", () => {
    const dependency = (index: number) => `    at next${index} (/srv/app/node_modules/router/layer${index}.js:${index}:3)`;
    const deep = Array.from({ length: 60 }, (_, index) => dependency(index));
    const { frames } = splitQuestion(`It fails\n${deep.join("\n")}\n    at addItem (/srv/app/src/cart.ts:7:9)`);
    expect(frames).toHaveLength(32);
    expect(frames[0]).toMatchObject({ symbol: "next0" });
    expect(frames.at(-1)).toEqual({ path: "/srv/app/src/cart.ts", line: 7, symbol: "addItem" });
  });

  it("has the innermost calls of a deep Python trace, each once", () => {
    const calls = Array.from({ length: 50 }, (_, index) => `  File "a${index}.py", line 1, in f${index}`);
    const { frames } = splitQuestion(
      `Traceback (most recent call last):\n${[...calls, ...calls.slice(-1)].join("\n")}\nValueError: bad value`,
    );
    expect(frames.map(({ symbol }) => symbol)).toEqual(Array.from({ length: 32 }, (_, index) => `f${49 - index}`));
  });

  it("has bounded parts, whatever it contains", () => {
    for (const unit of ["a/", "a.b::", "at f(", "((((", "`x", 'File "', "aB", "é_", "\n\t", "x.ts:1:", " in ", "Error: "]) {
      const text = unit.repeat(Math.ceil(32_000 / unit.length)).slice(0, 32_000);
      const parts = splitQuestion(text);
      expect(parts.identifiers.length, unit).toBeLessThanOrEqual(32);
      expect(parts.paths.length).toBeLessThanOrEqual(16);
      expect(parts.frames.length).toBeLessThanOrEqual(32);
      expect(parts.errors.length).toBeLessThanOrEqual(4);
      expect(parts.title.length).toBeLessThanOrEqual(300);
      expect(parts.prose.length).toBeLessThanOrEqual(2_100);
    }
    expect(splitQuestion("")).toEqual({ title: "", prose: "", identifiers: [], paths: [], frames: [], errors: [] });
  });
});
