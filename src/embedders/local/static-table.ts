import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { builtFile } from "../../files/built-file.ts";
import { type WordPiece, wordPiece } from "./wordpiece.ts";

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

/** The vectors of tokens, in the memory of a WebAssembly kernel. */
export interface StaticTable {
  readonly tokenizer: WordPiece;
  /** Returns the vector of a sequence of tokens at length one; the constant vector for none that is known. */
  vectorOf(tokens: readonly number[]): Float32Array;
}

/** The part of the WebAssembly interface used here; TypeScript has it only in the browser's library. */
interface Wasm {
  Module: new (bytes: Uint8Array) => object;
  Memory: new (size: { initial: number }) => { readonly buffer: ArrayBuffer };
  Instance: new (module: object, imports: object) => { readonly exports: unknown };
}
interface Kernel {
  sumRows(table: number, stride: number, rows: number, factors: number, count: number, out: number): void;
}

const WASM_PAGE_BYTES = 65_536;

/** Reads a table whose vectors have this dimension, for texts of at most `tokensMax` tokens. */
export async function loadTable(modelDir: string, tokenizerFile: string, dimension: number, tokensMax: number): Promise<StaticTable> {
  const [description, content, tokenizer, binary] = await Promise.all([
    readFile(join(modelDir, "static.json"), "utf8").then((json) => JSON.parse(json) as TableDescription),
    readFile(join(modelDir, "static.bin")),
    readFile(tokenizerFile, "utf8").then((json) => JSON.parse(json)),
    readFile(builtFile("kernel/sum-rows.wasm")),
  ]);
  const base = Object.keys(tokenizer.model.vocab).length;
  const rowCount = base + description.words.length;
  if (description.dimension !== dimension || content.length !== rowCount * (4 + dimension))
    throw new Error(`static.bin has ${content.length} bytes, ${rowCount} rows of ${dimension} were expected`);
  const words = Object.fromEntries(description.words.map((word, index) => [word, base + index]));
  const scales = new Float32Array(content.buffer.slice(content.byteOffset, content.byteOffset + rowCount * 4));

  const { Module, Memory, Instance } = (globalThis as unknown as { WebAssembly: Wasm }).WebAssembly;
  const [sumAt, rowsAt, factorsAt] = [0, 4 * dimension, 4 * dimension + 4 * tokensMax];
  const tableAt = factorsAt + 4 * tokensMax;
  const memory = new Memory({ initial: Math.ceil((tableAt + rowCount * dimension) / WASM_PAGE_BYTES) });
  const kernel = new Instance(new Module(binary), { env: { memory } }).exports as Kernel;
  new Uint8Array(memory.buffer).set(content.subarray(rowCount * 4), tableAt);
  const sum = new Float32Array(memory.buffer, sumAt, dimension);
  const rows = new Int32Array(memory.buffer, rowsAt, tokensMax);
  const factors = new Float32Array(memory.buffer, factorsAt, tokensMax);

  const { halfLife, tfPower } = description;
  const weightAt = Float64Array.from({ length: tokensMax }, (_, position) => 1 / (1 + position / halfLife));
  const weights = new Float64Array(rowCount); // zero between two calls

  return {
    tokenizer: wordPiece({ ...tokenizer, model: { ...tokenizer.model, vocab: { ...tokenizer.model.vocab, ...words } } }),
    vectorOf(tokens) {
      let count = 0;
      for (let position = 0; position < tokens.length; position++) {
        const token = tokens[position]!;
        if (weights[token] === 0) rows[count++] = token;
        weights[token]! += weightAt[position]!;
      }
      for (let index = 0; index < count; index++) {
        const row = rows[index]!;
        factors[index] = scales[row]! * weights[row]! ** tfPower;
        weights[row] = 0;
      }
      kernel.sumRows(tableAt, dimension, rowsAt, factorsAt, count, sumAt);
      return unit(sum.slice());
    },
  };
}

function unit(vector: Float32Array): Float32Array {
  let sum = 0;
  for (let index = 0; index < vector.length; index++) sum += vector[index]! * vector[index]!;
  const length = Math.sqrt(sum);
  if (length < 1e-9) return vector.fill(1 / Math.sqrt(vector.length));
  for (let index = 0; index < vector.length; index++) vector[index]! /= length;
  return vector;
}
