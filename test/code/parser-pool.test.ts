import { execFileSync } from "node:child_process";
import { pathToFileURL } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import type { ThreadVectors } from "../../src/code/derive-file.ts";
import { type ParserPool, type ParserPoolOptions, parserPool } from "../../src/code/parser-pool.ts";
import { staticEmbedder } from "../../src/embedders/local/static.ts";
import { chunkText } from "../../src/model/code-index.ts";
import { blocksOf, unpackFile } from "../../src/text/pack-file.ts";
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
    const files = await Promise.all(FIXTURES.map((input) => parsers.derive(input)));
    expect(files.filter(({ how, notice }) => how !== "syntax" || notice !== undefined)).toEqual([]);
    expect(files.every(({ packed }) => packed.outlines.length > 0)).toBe(true);
  });

  it("embeds the chunks in its threads with the same vectors as this thread", async () => {
    const parsers = pool({ timeoutMs: 120_000 });
    const embedder = staticEmbedder();
    const input = fixture("matrix.cpp");
    const { packed, vectors } = await parsers.derive(input, { model: embedder.threadModel });
    const texts = unpackFile(packed).chunks.map((chunk) => chunkText(input.path, chunk));
    const expected = await embedder.embed(texts);
    await embedder.close();
    expect(texts.length).toBeGreaterThan(1);
    const { dimension, values } = vectors as ThreadVectors;
    expect(values.length).toBe(texts.length * dimension);
    const differs = expected.filter((one, index) => one.some((value, place) => value !== values[index * dimension + place]));
    expect(differs.length).toBe(0);
  });

  it("embeds stored chunks with the same vectors, and returns nothing without the model", async () => {
    const parsers = pool({ timeoutMs: 120_000 });
    const embedder = staticEmbedder();
    const input = fixture("matrix.cpp");
    const { packed, vectors } = await parsers.derive(input, { model: embedder.threadModel });
    const chunks = packed.outlines.map((outline, key) => ({ ...outline, ...packed.places[key]!, key, path: input.path }));
    const stored = { chunks, blocks: blocksOf(packed) };
    expect(await parsers.embed(stored, embedder.threadModel!)).toEqual(vectors);
    expect(await parsers.embed(stored, { ...embedder.threadModel!, options: { modelDir: "/nowhere" } })).toBeUndefined();
    await embedder.close();
  });

  it("returns the texts to embed when a thread cannot open the model", async () => {
    const parsers = pool({ timeoutMs: 120_000 });
    const model = { module: "embedders/local/static.js", create: "staticEmbedder", options: { modelDir: "/nowhere" } };
    const { vectors } = await parsers.derive(fixture("matrix.cpp"), { model });
    expect(vectors).toMatchObject({ texts: expect.arrayContaining([expect.stringContaining("matrix.cpp")]) });
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
      parsers.derive(file("ok")),
      parsers.derive(file(`${content}\n\nline`)),
      parsers.derive(file("ok")),
    ]);
    expect([first.how, next.how]).toEqual(["syntax", "syntax"]);
    expect(bad.how).toBe("lines");
    expect(bad.notice).toMatch(notice);
    expect(
      unpackFile(bad.packed)
        .chunks.map(({ text }) => text)
        .join(""),
    ).toBe(`${content}\n\nline`);
  });

  it("repeats the other files of a message when a thread is lost", async () => {
    const parsers = pool({ workerUrl: misbehaving, timeoutMs: 120_000 });
    const files = ["ok", "THROW 1", "ok", "EXIT 2", "ok", "ok"].map((content) => parsers.derive(file(content)));
    expect((await Promise.all(files)).map(({ how }) => how)).toEqual(["syntax", "lines", "syntax", "lines", "syntax", "syntax"]);
  });

  it("does not count the loading of a grammar as time of the file", async () => {
    const parsers = pool({ workerUrl: misbehaving, timeoutMs: 2_000 });
    expect(await parsers.derive(file("SLOW GRAMMAR"))).toMatchObject({ how: "syntax" });
  });

  it("falls back to lines for every file when no parser can start", async () => {
    const parsers = pool({ workerUrl: broken });
    const files = await Promise.all([1, 2, 3].map((number) => parsers.derive(file(`const a = ${number};`))));
    expect(files.map(({ how }) => how)).toEqual(["lines", "lines", "lines"]);
    expect(files[0]?.notice).toMatch(/crashed: Cannot find module/);
  });

  it("bounds the memory of the real parser: a file that needs more is cut by lines", async () => {
    const parsers = pool({ memoryBytes: 48 * 1024 * 1024, timeoutMs: 250_000 });
    const hungry = await parsers.derive({ path: "a.cpp", content: "a<".repeat(30_000) });
    expect(hungry).toMatchObject({ how: "lines", notice: expect.stringMatching(/the parser (failed|crashed)/) });
    expect(await parsers.derive(fixture("matrix.cpp"))).toMatchObject({ how: "syntax" });
  });

  it("stops the real parser at the time limit", async () => {
    // Tags nested this deep keep the grammar of HTML busy for half a minute.
    const parsers = pool({ timeoutMs: 4_000 });
    const slow = await parsers.derive({ path: "a.html", content: "<div>\n".repeat(50_000) });
    expect(slow).toMatchObject({ how: "lines", notice: expect.stringMatching(/took longer than 4000 ms/) });
    expect(await parsers.derive(fixture("page.html"))).toMatchObject({ how: "syntax" });
  });

  it("does not try the syntax of a giant file", async () => {
    const giant = await pool().derive(file("a;\n".repeat(800_000)));
    expect(giant).toMatchObject({ how: "lines", notice: expect.stringMatching(/longer than 2097152 characters/) });
  });

  it("needs no thread for a short text without a grammar", async () => {
    const parsers = pool({ workerUrl: broken });
    expect(await parsers.derive({ path: "notes.txt", content: "one\n\ntwo" })).toMatchObject({ how: "lines", language: "text" });
    const long = await pool().derive({ path: "long.txt", content: "word\n\n".repeat(50_000) });
    expect(long).toMatchObject({ how: "lines", language: "text" });
    expect(long.notice).toBeUndefined();
    expect(await parsers.derive({ path: "notes.md", content: "# One\n\ntwo" })).toMatchObject({ how: "syntax", language: "markdown" });
  });

  it("rejects what is cancelled while it waits or runs, and continues", async () => {
    const parsers = pool({ workerUrl: misbehaving });
    const controller = new AbortController();
    const running = parsers.derive(file("ok"), { signal: controller.signal });
    const waiting = parsers.derive(file("HANG"), { signal: controller.signal });
    controller.abort();
    await expect(running).rejects.toMatchObject({ code: "cancelled" });
    await expect(waiting).rejects.toMatchObject({ code: "cancelled" });
    await expect(parsers.derive(file("ok"), { signal: controller.signal })).rejects.toMatchObject({ code: "cancelled" });
    expect(await parsers.derive(file("ok"))).toMatchObject({ how: "syntax" });
  });

  it("rejects what still waits when it is closed, and everything after", async () => {
    const parsers = pool({ workerUrl: misbehaving });
    const hanging = parsers.derive(file("HANG"));
    const waiting = parsers.derive(file("ok"));
    const outcome = Promise.allSettled([hanging, waiting]);
    await parsers.close();
    expect((await outcome).map((result) => result.status === "rejected" && result.reason.code)).toEqual(["unavailable", "unavailable"]);
    await expect(parsers.derive(file("ok"))).rejects.toMatchObject({ code: "unavailable" });
  });

  it("keeps no process alive and starts again after it was idle", () => {
    const module = pathToFileURL(new URL("../../dist/code/parser-pool.js", import.meta.url).pathname);
    const program = `
      import { parserPool } from ${JSON.stringify(module.href)};
      const pool = parserPool({ threads: 1, idleMs: 20 });
      const file = { path: "a.ts", content: "export function one() { return 1; }" };
      const first = await pool.derive(file);
      await new Promise((resolve) => setTimeout(resolve, 300));
      const second = await pool.derive(file);
      console.log(first.how, second.how);`;
    expect(execFileSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8", timeout: 250_000 })).toBe(
      "syntax syntax\n",
    );
  });
});
