import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { builtFile } from "../../files/built-file.ts";
import { CairnError } from "../../model/errors.ts";
import type { Embedder, EmbedOptions } from "../../ports/embedder.ts";
import { yieldToCalls } from "../../scheduling/calls.ts";
import { type WordPiece, wordPiece } from "./wordpiece.ts";

export interface StaticOptions {
  /** Folder of static.json and static.bin; default: the files of the build. */
  readonly modelDir?: string;
  /** Folder of tokenizer.json; default: that of MiniLM, from the build. */
  readonly tokenizerFile?: string;
  /** Milliseconds that an idle table stays in memory; default five minutes. */
  readonly idleMs?: number;
}

/** static.json: the parameters of the table in static.bin. */
interface TableDescription {
  readonly dimension: number;
  /** Words that are tokens of their own, numbered after the tokenizer's vocabulary. */
  readonly words: readonly string[];
  /** A token at this position counts half as much as the first: names and summaries come first. */
  readonly halfLife: number;
  /** Exponent of a token's count: the tenth `self` adds little. */
  readonly tfPower: number;
}

interface Table extends TableDescription {
  readonly tokenizer: WordPiece;
  readonly scales: Float32Array;
  readonly codes: Int8Array;
}

/** Tokens of a text that are read. */
export const STATIC_TOKENS = 512;
// Characters per token, on the high side; the rest of a huge text is not read.
const TEXT_CHARS = 16_000;
// Texts per turn of the event loop: a few milliseconds of work.
const SLICE_TEXTS = 16;
const IDLE_MS = 5 * 60_000;
const MODEL = "cairn-static";
const VERSION = "1";
const DIMENSION = 256;

/** Opens a table of token vectors distilled from MiniLM, in plain JavaScript: thousands of texts per second, less accurate. */
export function staticEmbedder({
  modelDir = builtFile("models/static"),
  tokenizerFile = builtFile("models/minilm/tokenizer.json"),
  idleMs = IDLE_MS,
}: StaticOptions = {}): Embedder {
  let table: Promise<Table> | undefined;
  let closed = false;
  let idle: NodeJS.Timeout | undefined;
  const use = (): Promise<Table> => {
    table ??= load(modelDir, tokenizerFile);
    idle ??= setTimeout(() => {
      table = undefined;
    }, idleMs).unref();
    idle.refresh();
    return table;
  };
  return {
    model: MODEL,
    version: VERSION,
    dimension: DIMENSION,
    textChars: TEXT_CHARS,
    async embed(texts, { signal }: EmbedOptions = {}) {
      if (closed) throw new CairnError("unavailable", "The static embedder is closed.");
      signal?.throwIfAborted();
      const loaded = await use().catch((error: unknown) => {
        table = undefined; // the next call reads the files again
        throw new CairnError("unavailable", "The static embedding table cannot be read. Run the build again.", { cause: error });
      });
      const vectors: Float32Array[] = [];
      for (const text of texts) {
        if (vectors.length % SLICE_TEXTS === SLICE_TEXTS - 1) {
          await nextTurn();
          signal?.throwIfAborted();
        }
        yieldToCalls();
        vectors.push(embedText(loaded, text));
      }
      return vectors;
    },
    async coverage(text) {
      return (await use()).tokenizer.coverage(splitIdentifiers(text));
    },
    threadModel: { module: "embedders/local/static.js", create: "staticEmbedder", options: { modelDir, tokenizerFile } },
    async close() {
      closed = true;
      table = undefined;
      clearTimeout(idle);
    },
  };
}

/** Splits identifiers into words: parseJSONFile becomes parse JSON File. */
export function splitIdentifiers(text: string): string {
  return text.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/([A-Z])([A-Z][a-z])/g, "$1 $2");
}

async function load(modelDir: string, tokenizerFile: string): Promise<Table> {
  const [description, content, tokenizer] = await Promise.all([
    readFile(join(modelDir, "static.json"), "utf8").then((json) => JSON.parse(json) as TableDescription),
    readFile(join(modelDir, "static.bin")),
    readFile(tokenizerFile, "utf8").then((json) => JSON.parse(json)),
  ]);
  const base = Object.keys(tokenizer.model.vocab).length;
  const rows = base + description.words.length;
  if (description.dimension !== DIMENSION || content.length !== rows * (4 + DIMENSION))
    throw new Error(`static.bin has ${content.length} bytes, ${rows} rows of ${DIMENSION} were expected`);
  const words = Object.fromEntries(description.words.map((word, index) => [word, base + index]));
  return {
    ...description,
    tokenizer: wordPiece({ ...tokenizer, model: { ...tokenizer.model, vocab: { ...tokenizer.model.vocab, ...words } } }),
    scales: new Float32Array(content.buffer.slice(content.byteOffset, content.byteOffset + rows * 4)),
    codes: new Int8Array(content.buffer, content.byteOffset + rows * 4, rows * DIMENSION),
  };
}

function embedText({ tokenizer, scales, codes, halfLife, tfPower }: Table, text: string): Float32Array {
  const weights = new Map<number, number>();
  let position = 0;
  for (const id of tokenizer.pieces(splitIdentifiers(text.slice(0, TEXT_CHARS)), STATIC_TOKENS)) {
    weights.set(id, (weights.get(id) ?? 0) + 1 / (1 + position / halfLife));
    position++;
  }
  const vector = new Float32Array(DIMENSION);
  for (const [id, weight] of weights) {
    const factor = scales[id]! * weight ** tfPower;
    const row = id * DIMENSION;
    if (factor !== 0) for (let index = 0; index < DIMENSION; index++) vector[index]! += factor * codes[row + index]!;
  }
  return unit(vector);
}

/** Returns the constant vector of a text without any known token. */
function unit(vector: Float32Array): Float32Array {
  let sum = 0;
  for (const value of vector) sum += value * value;
  const length = Math.sqrt(sum);
  if (length < 1e-9) return vector.fill(1 / Math.sqrt(vector.length));
  for (let index = 0; index < vector.length; index++) vector[index]! /= length;
  return vector;
}
