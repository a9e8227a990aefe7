import { createHash } from "node:crypto";
import { cpSync, mkdtempSync, readFileSync, rmSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { splitIdentifiers, staticEmbedder } from "../../src/embedders/local/static.ts";
import { wordPiece } from "../../src/embedders/local/wordpiece.ts";
import { builtFile } from "../../src/files/built-file.ts";

describe("the static embedder", () => {
  const embedder = staticEmbedder();

  it("finds functions by what they do, though the words differ", async () => {
    const code = {
      parse: "export function loadConfig(path) {\n  return JSON.parse(readFileSync(path, 'utf8'));\n}",
      retry:
        "async function withRetry(fn, attempts) {\n  for (let i = 0; i < attempts; i++) {\n    try { return await fn(); } catch (e) { await sleep(2 ** i * 100); }\n  }\n}",
      mean: "def average(values):\n    return sum(values) / len(values)",
      dedupe: "def unique(items):\n    seen = set()\n    return [x for x in items if not (x in seen or seen.add(x))]",
      temp: "def mkdtemp(prefix):\n    path = os.path.join(gettempdir(), prefix + random_name())\n    os.mkdir(path, 0o700)\n    return path",
    };
    const texts = await embedder.embed(Object.values(code));
    const asks: Record<string, keyof typeof code> = {
      "read settings from a json file": "parse",
      "try again with exponential backoff": "retry",
      "compute the mean of a list of numbers": "mean",
      "remove duplicates from a list": "dedupe",
      "create a temporary directory": "temp",
    };
    for (const [ask, expected] of Object.entries(asks)) {
      const [query] = await embedder.embed([ask], { purpose: "query" });
      const scores = texts.map((text) => dot(query!, text));
      expect([ask, Object.keys(code)[scores.indexOf(Math.max(...scores))]]).toEqual([ask, expected]);
    }
  });

  it("separates prose about different topics", async () => {
    const [a, b, c] = await embedder.embed([
      "The login page rejects valid passwords after the upgrade",
      "Users cannot sign in with correct credentials since the new release",
      "The quarterly report needs a chart of sales by region",
    ]);
    expect(dot(a!, b!)).toBeGreaterThan(dot(a!, c!) + 0.1);
  });

  it("gives one unit-length vector per text, whatever the text", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.string({ unit: "binary", maxLength: 80 }), { maxLength: 5 }), async (texts) => {
        const vectors = await embedder.embed(texts);
        expect(vectors).toHaveLength(texts.length);
        for (const vector of vectors) {
          expect(vector).toHaveLength(256);
          expect(dot(vector, vector)).toBeCloseTo(1, 4);
        }
      }),
      { numRuns: 50 },
    );
  });

  it("sums the weighted rows of the tokens, as plain arithmetic does", async () => {
    const { words, halfLife, tfPower } = JSON.parse(readFileSync(builtFile("models/static/static.json"), "utf8"));
    const bytes = readFileSync(builtFile("models/static/static.bin"));
    const file = JSON.parse(readFileSync(builtFile("models/minilm/tokenizer.json"), "utf8"));
    const base = Object.keys(file.model.vocab).length;
    const rows = base + words.length;
    for (const [index, word] of words.entries()) file.model.vocab[word] = base + index;
    const tokenizer = wordPiece(file);
    const text =
      "async function withRetry(fn, attempts) {\n  for (;;) try { return await fn(attempts); } catch { await sleep(2 ** 3); }\n}";
    const weights = new Map<number, number>();
    for (const [position, id] of tokenizer.pieces(splitIdentifiers(text), 512).entries())
      weights.set(id, (weights.get(id) ?? 0) + 1 / (1 + position / halfLife));
    const expected = new Float64Array(256);
    for (const [id, weight] of weights)
      for (let i = 0; i < 256; i++) expected[i]! += bytes.readFloatLE(4 * id) * weight ** tfPower * bytes.readInt8(4 * rows + 256 * id + i);
    const length = Math.hypot(...expected);
    const [vector] = await embedder.embed([text]);
    for (let i = 0; i < 256; i++) expect(vector![i]).toBeCloseTo(expected[i]! / length, 6);
  });

  it("gives every text its own vector, alone and in a batch, and reads huge texts in part", async () => {
    const texts = [...Array.from({ length: 100 }, (_, index) => `text ${index}`), "word ".repeat(1_000_000)];
    const together = await embedder.embed(texts);
    for (const index of [0, 17, 99, 100]) expect((await embedder.embed([texts[index]!]))[0]).toEqual(together[index]);
  });

  it("lets other work continue during a large batch, and stops when cancelled", async () => {
    const controller = new AbortController();
    const batch = embedder.embed(
      Array.from({ length: 5_000 }, () => "some text ".repeat(100)),
      { signal: controller.signal },
    );
    const outcome = expect(batch).rejects.toMatchObject({ name: "AbortError" });
    setTimeout(() => controller.abort(), 5); // runs only if the batch yields
    await outcome;
  });

  it("refuses a table that is cut short, and reads it once it is whole", async () => {
    const modelDir = mkdtempSync(join(tmpdir(), "cairn-table-"));
    cpSync(builtFile("models/static"), modelDir, { recursive: true });
    truncateSync(join(modelDir, "static.bin"), 1_000_000);
    const damaged = staticEmbedder({ modelDir });
    await expect(damaged.embed(["hello"])).rejects.toMatchObject({ code: "unavailable" });
    cpSync(builtFile("models/static/static.bin"), join(modelDir, "static.bin"));
    expect(await damaged.embed(["hello"])).toEqual(await embedder.embed(["hello"]));
    rmSync(modelDir, { recursive: true });
  });

  it("releases an idle table, and reads it again", async () => {
    const modelDir = mkdtempSync(join(tmpdir(), "cairn-table-"));
    cpSync(builtFile("models/static"), modelDir, { recursive: true });
    const idle = staticEmbedder({ modelDir, idleMs: 1 });
    await idle.embed(["hello"]);
    rmSync(join(modelDir, "static.bin"));
    const outcome = () =>
      idle.embed(["hello"]).then(
        () => "embedded",
        (error) => error.code,
      );
    await expect.poll(outcome).toBe("unavailable");
    cpSync(builtFile("models/static/static.bin"), join(modelDir, "static.bin"));
    expect(await idle.embed(["hello"])).toEqual(await embedder.embed(["hello"]));
    rmSync(modelDir, { recursive: true });
  });

  it("ships the table that is described beside it", () => {
    const { words, dimension } = JSON.parse(readFileSync(builtFile("models/static/static.json"), "utf8"));
    expect(readFileSync(builtFile("models/static/static.bin"))).toHaveLength((30_522 + words.length) * (4 + dimension));
  });

  it("has a new version whenever the table changes: two tables under one version would mix two vector spaces", () => {
    const hash = createHash("sha256")
      .update(readFileSync(builtFile("models/static/static.bin")))
      .update(readFileSync(builtFile("models/static/static.json")));
    expect([embedder.version, hash.digest("hex")]).toEqual(["1", "24280bd2bad2ddffa69d1bee82c62588dd91ec97937a328e30d2a1a139f8d553"]);
  });

  it("refuses work after it was closed", async () => {
    const closed = staticEmbedder();
    await closed.close();
    await expect(closed.embed(["hello"])).rejects.toMatchObject({ code: "unavailable" });
  });
});

describe("splitIdentifiers", () => {
  it.each([
    ["parseJSONFile", "parse JSON File"],
    ["HTTPAdapter", "HTTP Adapter"],
    ["snake_case stays", "snake_case stays"],
    ["utf8Decode", "utf8 Decode"],
    ["", ""],
  ])("reads %s as %s", (text, expected) => expect(splitIdentifiers(text)).toBe(expected));
});

function dot(a: Float32Array, b: Float32Array): number {
  return a.reduce((sum, value, index) => sum + value * b[index]!, 0);
}
