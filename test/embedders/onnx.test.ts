import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { minilmEmbedder } from "../../src/embedders/local/minilm.ts";
import type { OnnxOptions } from "../../src/embedders/local/onnx/model-folder.ts";
import { onnxEmbedder } from "../../src/embedders/local/onnx/onnx.ts";
import { builtFile } from "../../src/files/built-file.ts";
import { open } from "../../src/index.ts";
import type { Embedder } from "../../src/ports/embedder.ts";
import { type TinyModel, writeTinyModel } from "../support/tiny-onnx.mjs";

const opened: { close(): Promise<void> }[] = [];
const folders: string[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((one) => one.close()));
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

async function openModel(options: OnnxOptions): Promise<Embedder> {
  const embedder = await onnxEmbedder(options);
  opened.push(embedder);
  return embedder;
}

const newFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "cairn-onnx-"));
  folders.push(folder);
  return folder;
};
const writeJson = (folder: string, name: string, content: unknown) => writeFileSync(join(folder, name), JSON.stringify(content));

/** A folder whose words a, b and c are the tokens 0, 1 and 2, without special tokens. */
function tinyFolder(model: Partial<TinyModel> = {}): string {
  const folder = newFolder();
  const tokenizer = {
    normalizer: null,
    pre_tokenizer: { type: "WhitespaceSplit" },
    post_processor: null,
    decoder: null,
    added_tokens: [],
    model: {
      type: "WordPiece",
      unk_token: "c",
      continuing_subword_prefix: "##",
      max_input_chars_per_word: 100,
      vocab: { a: 0, b: 1, c: 2 },
    },
  };
  writeJson(folder, "config.json", { model_type: "bert", hidden_size: 2, max_position_embeddings: 64 });
  writeJson(folder, "tokenizer.json", tokenizer);
  const rows = [
    [1, 0],
    [0, 1],
    [-1, 0],
  ];
  writeTinyModel(folder, { rows, ...model });
  return folder;
}

const embedOne = async (embedder: Embedder, text: string, purpose?: "query") => [...(await embedder.embed([text], { purpose }))[0]!];

describe("a model folder of the user", () => {
  it("gives MiniLM's vectors for MiniLM's own files", async () => {
    const folder = newFolder();
    cpSync(builtFile("models/minilm"), folder, { recursive: true });
    writeJson(folder, "config.json", { hidden_size: 384, max_position_embeddings: 512 });
    const [own, bundled] = [await openModel({ path: folder, maxTokens: 256 }), minilmEmbedder()];
    opened.push(bundled);
    const texts = ["rotate the signing keys", "", "Crème 北京", "long text ".repeat(500)];
    const [actual, expected] = [await own.embed(texts), await bundled.embed(texts)];
    expect(own.dimension).toBe(384);
    for (const [index, vector] of actual.entries())
      expect(vector.reduce((sum, value, at) => sum + value * expected[index]![at]!, 0)).toBeCloseTo(1, 5);
  });

  it("pools by the mean, and by the first token where the settings or the folder name it", async () => {
    const folder = tinyFolder({ inputs: ["input_ids", "attention_mask", "token_type_ids"] });
    expect(await embedOne(await openModel({ path: folder }), "a b")).toEqual([expect.closeTo(Math.SQRT1_2), expect.closeTo(Math.SQRT1_2)]);
    expect(await embedOne(await openModel({ path: folder, pooling: "cls" }), "b a")).toEqual([0, 1]);
    mkdirSync(join(folder, "1_Pooling"));
    writeJson(folder, "1_Pooling/config.json", { pooling_mode_cls_token: true });
    expect(await embedOne(await openModel({ path: folder }), "b a")).toEqual([0, 1]);
  });

  it("prefers the model's own sentence_embedding", async () => {
    const embedder = await openModel({ path: tinyFolder({ output: "sentence_embedding" }) });
    const half = expect.closeTo(Math.SQRT1_2);
    expect(await embedOne(embedder, "a a a b")).toEqual([half, half]);
  });

  it("reads tables from an external data file, and has another version when that file changes", async () => {
    const folder = tinyFolder({ external: "model.onnx_data" });
    const embedder = await openModel({ path: folder });
    expect(await embedOne(embedder, "b")).toEqual([0, 1]);
    writeFileSync(join(folder, "model.onnx_data"), Buffer.from(Float32Array.of(0, 1, 1, 0, 1, 0).buffer));
    const changed = await openModel({ path: folder });
    expect(changed.version).not.toBe(embedder.version);
    expect(await embedOne(changed, "b")).toEqual([1, 0]);
  });

  it("refuses files that changed after it was opened: their vectors belong to another version", async () => {
    const folder = tinyFolder();
    const embedder = await openModel({ path: folder });
    writeTinyModel(folder, { rows: [[0, 1], [1, 0], [1, 0], [1, 1]] }); // biome-ignore format: a table
    await expect(embedder.embed(["a"])).rejects.toMatchObject({ code: "unavailable", message: expect.stringContaining("Restart Cairn") });
  });

  it("puts the prefixes of the settings or of the folder before queries and records", async () => {
    const folder = tinyFolder();
    writeJson(folder, "config_sentence_transformers.json", { prompts: { query: "b ", document: "" } });
    const embedder = await openModel({ path: folder, pooling: "cls" });
    expect([await embedOne(embedder, "a", "query"), await embedOne(embedder, "a")]).toEqual([[0, 1], [1, 0]]); // biome-ignore format: two vectors
    const own = await openModel({ path: folder, pooling: "cls", queryPrefix: "c ", documentPrefix: "b " });
    expect([await embedOne(own, "a", "query"), await embedOne(own, "a")]).toEqual([[-1, 0], [0, 1]]); // biome-ignore format: two vectors
    expect(own.version).not.toBe(embedder.version);
  });

  it("reads at most max_tokens, and shortens vectors to dimensions", async () => {
    const folder = tinyFolder();
    const cut = await openModel({ path: folder, maxTokens: 8 });
    expect(await embedOne(cut, `${"a ".repeat(8)}${"b ".repeat(100)}`)).toEqual([1, 0]);
    const short = await openModel({ path: folder, dimensions: 1 });
    expect([short.dimension, await embedOne(short, "a")]).toEqual([1, [1]]);
  });

  it("opens embedder.file, and finds onnx/model.onnx", async () => {
    const folder = tinyFolder();
    rmSync(join(folder, "model.onnx"));
    mkdirSync(join(folder, "onnx"));
    const rows = [
      [0, 1],
      [1, 0],
      [1, 0],
    ];
    writeTinyModel(join(folder, "onnx"), { rows });
    writeTinyModel(join(folder, "onnx"), { rows: rows.toReversed(), name: "model_quantized.onnx" });
    expect(await embedOne(await openModel({ path: folder }), "a")).toEqual([0, 1]);
    expect(await embedOne(await openModel({ path: folder, file: "onnx/model_quantized.onnx" }), "a")).toEqual([1, 0]);
  });

  it("gives a text without tokens a valid vector", async () => {
    const vector = await embedOne(await openModel({ path: tinyFolder() }), "");
    expect(Math.hypot(...vector)).toBeCloseTo(1);
  });

  it.each<[string, (folder: string) => void, Partial<OnnxOptions>, RegExp]>([
    ["no folder", (folder) => rmSync(folder, { recursive: true }), {}, /is not a folder/],
    ["no config.json", (folder) => rmSync(join(folder, "config.json")), {}, /has no config\.json/],
    [
      "a config.json that is no JSON",
      (folder) => writeFileSync(join(folder, "config.json"), "{"),
      {},
      /config\.json" is not a JSON object/,
    ],
    ["a config.json without a width", (folder) => writeJson(folder, "config.json", {}), {}, /no hidden_size\. Set embedder\.dimensions/],
    ["no tokenizer.json", (folder) => rmSync(join(folder, "tokenizer.json")), {}, /has no tokenizer\.json/],
    ["no model.onnx", (folder) => rmSync(join(folder, "model.onnx")), {}, /has no model\.onnx and no onnx\/model\.onnx/],
    ["a file that does not exist", () => {}, { file: "other.onnx" }, /has no other\.onnx/],
    ["a broken tokenizer.json", (folder) => writeJson(folder, "tokenizer.json", {}), {}, /Tokenizer/],
    ["a model.onnx that is no model", (folder) => writeFileSync(join(folder, "model.onnx"), "text"), {}, /model\.onnx/],
    [
      "another width than config.json",
      (folder) => writeJson(folder, "config.json", { hidden_size: 3 }),
      {},
      /Set embedder\.dimensions to 2/,
    ],
    ["more dimensions than the model has", () => {}, { dimensions: 3 }, /has 2 values, not 3/],
    [
      "an input of another kind",
      (folder) => writeTinyModel(folder, { rows: [[1, 0]], inputs: ["input_ids", "pixels"] }),
      {},
      /input pixels/,
    ],
    [
      "pooling of a pooled output",
      (folder) => writeTinyModel(folder, { rows: [[1, 0]], output: "sentence_embedding" }),
      { pooling: "mean" },
      /pooled already/,
    ],
  ])("reports %s", async (_, damage, options, message) => {
    const folder = tinyFolder();
    damage(folder);
    const result = openModel({ path: folder, ...options }).then((embedder) => embedder.embed(["a"]));
    await expect(result).rejects.toMatchObject({ code: "unavailable", message: expect.stringMatching(message) });
  });
});

describe("embedder.kind onnx", () => {
  const projectPath = "/srv/own-model";
  const ref = { projectPath, collection: "checkpoints" as const };

  it("embeds new records, and an upgrade switches to the changed files", async () => {
    const folder = tinyFolder();
    const dataDir = newFolder();
    const choice = { kind: "onnx", path: folder, model: "tiny" } as const;
    const first = await open({ dataDir, embedder: choice });
    await first.checkpoints.save({ projectPath, summary: "a" });
    await first.close();
    writeTinyModel(folder, { rows: [[0, 1], [1, 0], [1, 0], [1, 1]] }); // biome-ignore format: a table
    const cairn = await open({ dataDir, embedder: choice });
    opened.push(cairn);
    const before = await cairn.checkpoints.search({ projectPath, query: "a" });
    expect(before.degraded).toEqual([expect.stringContaining("the model tiny of the stored vectors is not available here")]);
    expect(await cairn.embeddings.upgrade({ ...ref, model: "onnx" })).toMatchObject({ model: "tiny", embedded: 1, switched: true });
    expect(await cairn.checkpoints.search({ projectPath, query: "a" })).toMatchObject({ degraded: [], model: "tiny" });
    expect((await cairn.embeddings.list(ref)).map(({ model, isCurrent, available }) => [model, isCurrent, available])).toEqual([
      ["tiny", false, false],
      ["tiny", true, true],
    ]);
  });

  it("stores records without a vector while the folder is wrong; one notice and the doctor report it", async () => {
    const notices: string[] = [];
    const path = join(newFolder(), "missing");
    const cairn = await open({ storage: "memory", embedder: { kind: "onnx", path }, onNotice: (message) => notices.push(message) });
    opened.push(cairn);
    expect(await cairn.checkpoints.save({ projectPath, summary: "a" })).toMatchObject({ embedded: false });
    expect(await cairn.checkpoints.save({ projectPath, summary: "b" })).toMatchObject({ embedded: false });
    expect(notices).toEqual([expect.stringContaining(`${basename(path)}" is not a folder`)]);
    const { healthy, findings } = await cairn.doctor.examine({ quick: true });
    expect([healthy, findings]).toEqual([
      false,
      [expect.objectContaining({ check: "embeddings", message: expect.stringContaining("is not a folder") })],
    ]);
  });

  it("serves vectors of the bundled model while the folder is wrong", async () => {
    const dataDir = newFolder();
    const first = await open({ dataDir, embedder: { kind: "static" } });
    await first.checkpoints.save({ projectPath, summary: "the parser is done" });
    await first.close();
    const cairn = await open({ dataDir, embedder: { kind: "onnx", path: "/nowhere" }, onNotice: () => {} });
    opened.push(cairn);
    expect(await cairn.checkpoints.search({ projectPath, query: "parser" })).toMatchObject({ degraded: [], model: "cairn-static" });
  });

  it("needs embedder.path", async () => {
    await expect(open({ storage: "memory", embedder: { kind: "onnx" } })).rejects.toMatchObject({
      code: "invalid_input",
      message: expect.stringContaining("embedder.path"),
    });
  });
});
