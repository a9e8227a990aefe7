import { execFileSync } from "node:child_process";
import { pathToFileURL } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { type ParserPool, type ParserPoolOptions, parserPool } from "../../src/code/parser-pool.ts";
import { FIXTURES, fixture } from "./fixtures.ts";

const misbehaving = new URL("../fixtures/misbehaving-parser.mjs", import.meta.url);
const broken = new URL("../fixtures/there-is-no-such-worker.mjs", import.meta.url);
const pools: ParserPool[] = [];

function pool(options: ParserPoolOptions = {}): ParserPool {
  const made = parserPool({ threads: 1, ...options });
  pools.push(made);
  return made;
}

afterEach(async () => {
  await Promise.all(pools.splice(0).map((made) => made.close()));
});

const file = (content: string) => ({ path: "a.ts", content });

describe("the parser pool", () => {
  it("cuts files of all languages by their syntax, off the main thread", async () => {
    const parsers = pool({ threads: 2, timeoutMs: 120_000 });
    const files = await Promise.all(FIXTURES.map((input) => parsers.chunk(input)));
    expect(files.filter(({ how, notice }) => how !== "syntax" || notice !== undefined)).toEqual([]);
    expect(files.every(({ chunks }) => chunks.length > 0)).toBe(true);
  });

  it.each([
    ["hangs", "HANG", /took longer than 3000 ms/],
    ["throws", "THROW", /crashed: the parser threw/],
    ["ends its thread", "EXIT", /ended without an answer/],
    ["aborts", "FAIL", /failed: Aborted/],
    ["eats memory", "MEMORY", /crashed: .*memory/i],
  ])("costs a file only its syntax when the parser %s, and serves the next", async (_, content, notice) => {
    const parsers = pool({ workerUrl: misbehaving, timeoutMs: content === "HANG" ? 3_000 : 120_000, memoryBytes: 32 * 1024 * 1024 });
    const [first, bad, next] = await Promise.all([
      parsers.chunk(file("ok")),
      parsers.chunk(file(`${content}\n\nline`)),
      parsers.chunk(file("ok")),
    ]);
    expect([first.how, next.how]).toEqual(["syntax", "syntax"]);
    expect(bad.how).toBe("lines");
    expect(bad.notice).toMatch(notice);
    expect(bad.chunks.map(({ text }) => text).join("")).toBe(`${content}\n\nline`);
  });

  it("does not count the loading of a grammar as time of the file", async () => {
    const parsers = pool({ workerUrl: misbehaving, timeoutMs: 2_000 });
    expect(await parsers.chunk(file("SLOW GRAMMAR"))).toMatchObject({ how: "syntax" });
  });

  it("falls back to lines for every file when no parser can start", async () => {
    const parsers = pool({ workerUrl: broken });
    const files = await Promise.all([1, 2, 3].map((number) => parsers.chunk(file(`const a = ${number};`))));
    expect(files.map(({ how }) => how)).toEqual(["lines", "lines", "lines"]);
    expect(files[0]?.notice).toMatch(/crashed: Cannot find module/);
  });

  it("bounds the memory of the real parser: a file that needs more is cut by lines", async () => {
    const parsers = pool({ memoryBytes: 48 * 1024 * 1024, timeoutMs: 250_000 });
    const hungry = await parsers.chunk({ path: "a.cpp", content: "a<".repeat(30_000) });
    expect(hungry).toMatchObject({ how: "lines", notice: expect.stringMatching(/the parser (failed|crashed)/) });
    expect(await parsers.chunk(fixture("matrix.cpp"))).toMatchObject({ how: "syntax" });
  });

  it("stops the real parser at the time limit", async () => {
    // Tags nested this deep keep the grammar of HTML busy for half a minute.
    const parsers = pool({ timeoutMs: 4_000 });
    const slow = await parsers.chunk({ path: "a.html", content: "<div>\n".repeat(50_000) });
    expect(slow).toMatchObject({ how: "lines", notice: expect.stringMatching(/took longer than 4000 ms/) });
    expect(await parsers.chunk(fixture("page.html"))).toMatchObject({ how: "syntax" });
  });

  it("does not try the syntax of a giant file", async () => {
    const giant = await pool().chunk(file("a;\n".repeat(800_000)));
    expect(giant).toMatchObject({ how: "lines", notice: expect.stringMatching(/longer than 2097152 characters/) });
  });

  it("needs no thread for a short text without a grammar", async () => {
    const parsers = pool({ workerUrl: broken });
    expect(await parsers.chunk({ path: "notes.txt", content: "one\n\ntwo" })).toMatchObject({ how: "lines", language: "text" });
    const long = await pool().chunk({ path: "long.txt", content: "word\n\n".repeat(50_000) });
    expect(long).toMatchObject({ how: "lines", language: "text" });
    expect(long.notice).toBeUndefined();
    expect(await parsers.chunk({ path: "notes.md", content: "# One\n\ntwo" })).toMatchObject({ how: "syntax", language: "markdown" });
  });

  it("rejects what is cancelled while it waits or runs, and continues", async () => {
    const parsers = pool({ workerUrl: misbehaving });
    const controller = new AbortController();
    const running = parsers.chunk(file("ok"), { signal: controller.signal });
    const waiting = parsers.chunk(file("HANG"), { signal: controller.signal });
    controller.abort();
    await expect(running).rejects.toMatchObject({ code: "cancelled" });
    await expect(waiting).rejects.toMatchObject({ code: "cancelled" });
    await expect(parsers.chunk(file("ok"), { signal: controller.signal })).rejects.toMatchObject({ code: "cancelled" });
    expect(await parsers.chunk(file("ok"))).toMatchObject({ how: "syntax" });
  });

  it("rejects what still waits when it is closed, and everything after", async () => {
    const parsers = pool({ workerUrl: misbehaving });
    const hanging = parsers.chunk(file("HANG"));
    const waiting = parsers.chunk(file("ok"));
    const outcome = Promise.allSettled([hanging, waiting]);
    await parsers.close();
    expect((await outcome).map((result) => result.status === "rejected" && result.reason.code)).toEqual(["unavailable", "unavailable"]);
    await expect(parsers.chunk(file("ok"))).rejects.toMatchObject({ code: "unavailable" });
  });

  it("keeps no process alive and starts again after it was idle", () => {
    const module = pathToFileURL(new URL("../../dist/code/parser-pool.js", import.meta.url).pathname);
    const program = `
      import { parserPool } from ${JSON.stringify(module.href)};
      const pool = parserPool({ threads: 1, idleMs: 20 });
      const file = { path: "a.ts", content: "export function one() { return 1; }" };
      const first = await pool.chunk(file);
      await new Promise((resolve) => setTimeout(resolve, 300));
      const second = await pool.chunk(file);
      console.log(first.how, second.how);`;
    expect(execFileSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8", timeout: 250_000 })).toBe(
      "syntax syntax\n",
    );
  });
});
