import { statSync } from "node:fs";
import { basename, join } from "node:path";
import { readRegularFile, shortPath } from "../../../files/regular-file.ts";
import { CairnError } from "../../../model/errors.ts";
import type { Pooling } from "./pooling.ts";

/** How to use a model folder. The folder's own files give the defaults. */
export interface OnnxOptions {
  /** Folder with config.json, tokenizer.json and the ONNX file, as Hugging Face stores them. */
  readonly path: string;
  /** The ONNX file, relative to the folder; default model.onnx, else onnx/model.onnx. */
  readonly file?: string | undefined;
  /** Name under which the vectors are stored; default: the name of the folder. */
  readonly model?: string | undefined;
  readonly pooling?: Pooling | undefined;
  readonly queryPrefix?: string | undefined;
  readonly documentPrefix?: string | undefined;
  /** Length of the vectors: the first values of a longer vector are used. */
  readonly dimensions?: number | undefined;
  readonly maxTokens?: number | undefined;
  /** Milliseconds that an idle model stays in memory; default five minutes. */
  readonly idleMs?: number | undefined;
}

/** A model folder with every default resolved. */
export interface ModelFolder {
  readonly model: string;
  readonly modelFile: string;
  readonly tokenizerFile: string;
  readonly dimension: number;
  readonly maxTokens: number;
  /** Set where the user chose it; a pooled output of the model is an error then. */
  readonly pooling: Pooling | undefined;
  /** The pooling for an output with one vector per token. */
  readonly defaultPooling: Pooling;
  readonly queryPrefix: string;
  readonly documentPrefix: string;
}

type Json = Readonly<Record<string, unknown>>;

const CONFIG_BYTES_MAX = 1024 * 1024;
/** Tokens per text unless configured: the cost of attention grows with the square. */
const TOKENS_DEFAULT = 512;
/** Models of this family number their positions after the padding token, so two of them are not usable. */
const OFFSET_POSITIONS = /roberta|camembert/;
/** Names of the width in config.json. */
const WIDTHS = ["hidden_size", "d_model", "dim", "n_embd"];

/** Reads a model folder. Raises `unavailable` with the file that is missing or wrong and what to do. */
export function readModelFolder(options: OnnxOptions): ModelFolder {
  const { path } = options;
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory())
    throw new CairnError("unavailable", `embedder.path: ${shortPath(path)} is not a folder. Name the folder of the model's files.`);
  const config = readJson(join(path, "config.json"));
  if (config === undefined) throw missing(path, "config.json");
  const tokenizerFile = join(path, "tokenizer.json");
  if (!isFile(tokenizerFile)) throw missing(path, "tokenizer.json");
  const prompts = objectIn(readJson(join(path, "config_sentence_transformers.json")), "prompts");
  const pooling = readJson(join(path, "1_Pooling", "config.json"));
  return {
    model: options.model ?? basename(path),
    modelFile: modelFileIn(options),
    tokenizerFile,
    dimension: options.dimensions ?? widthOf(config, path),
    maxTokens: options.maxTokens ?? Math.min(TOKENS_DEFAULT, tokensOf(path, config)),
    pooling: options.pooling,
    defaultPooling: options.pooling ?? (pooling?.pooling_mode_cls_token === true ? "cls" : "mean"),
    queryPrefix: options.queryPrefix ?? textIn(prompts, "query") ?? "",
    documentPrefix: options.documentPrefix ?? textIn(prompts, "document") ?? textIn(prompts, "passage") ?? "",
  };
}

function modelFileIn({ path, file }: OnnxOptions): string {
  const candidates = file === undefined ? ["model.onnx", "onnx/model.onnx"] : [file];
  const found = candidates.map((name) => join(path, name)).find(isFile);
  if (found === undefined) throw missing(path, candidates.join(" and no "));
  return found;
}

function widthOf(config: Json, path: string): number {
  const width = WIDTHS.map((name) => config[name]).find(isCount);
  if (width !== undefined) return width;
  throw new CairnError("unavailable", `${shortPath(join(path, "config.json"))} has no hidden_size. Set embedder.dimensions.`);
}

/** Returns how many tokens the model reads: the smallest limit that its files state. */
function tokensOf(path: string, config: Json): number {
  const positions = isCount(config.max_position_embeddings) ? config.max_position_embeddings : TOKENS_DEFAULT;
  const usable = OFFSET_POSITIONS.test(String(config.model_type)) ? positions - 2 : positions;
  const trained = readJson(join(path, "sentence_bert_config.json"))?.max_seq_length;
  return isCount(trained) ? Math.min(trained, usable) : usable;
}

/** Reads a JSON object; `undefined` where the file does not exist. */
function readJson(path: string): Json | undefined {
  if (!isFile(path)) return undefined;
  try {
    const content: unknown = JSON.parse(readRegularFile(path, CONFIG_BYTES_MAX).toString("utf8"));
    if (typeof content === "object" && content !== null && !Array.isArray(content)) return content as Json;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw new CairnError("unavailable", (error as Error).message, { cause: error });
  }
  throw new CairnError("unavailable", `${shortPath(path)} is not a JSON object. Copy the file of the model again.`);
}

const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
const isCount = (value: unknown): value is number => Number.isInteger(value) && (value as number) > 0;

function objectIn(json: Json | undefined, name: string): Json | undefined {
  const value = json?.[name];
  return typeof value === "object" && value !== null ? (value as Json) : undefined;
}

function textIn(json: Json | undefined, name: string): string | undefined {
  const value = json?.[name];
  return typeof value === "string" ? value : undefined;
}

function missing(path: string, name: string): CairnError {
  return new CairnError(
    "unavailable",
    `embedder.path: ${shortPath(path)} has no ${name}. Put config.json, tokenizer.json and model.onnx of the model there.`,
  );
}
