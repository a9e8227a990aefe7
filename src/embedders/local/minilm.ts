import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { builtFile } from "../../files/built-file.ts";
import { modelProcess } from "./model-process.ts";
import { modelQueue, type ProcessEmbedder } from "./model-queue.ts";
import type { EmbedReply, EmbedRequest } from "./serve-embeddings.ts";
import { type WordPiece, wordPiece } from "./wordpiece.ts";

export interface MinilmOptions {
  /** Milliseconds that an idle model stays in memory; default five minutes. */
  readonly idleMs?: number;
  /** Folder of model.onnx and tokenizer.json; default: the files of the build. */
  readonly modelDir?: string;
}

const ENTRY = builtFile("embedders/local/minilm-process.js");
const DIMENSION = 384;
// Characters sent per text: 256 tokens never need more.
const TEXT_CHARS = 8_000;

/** Opens all-MiniLM-L6-v2 with int8 weights, in a process of its own that starts on first use and ends when idle. */
export function minilmEmbedder({ idleMs, modelDir = builtFile("models/minilm") }: MinilmOptions = {}): ProcessEmbedder {
  const process = modelProcess<EmbedRequest, EmbedReply>({ entry: ENTRY, args: [modelDir], idleMs });
  let tokenizer: Promise<WordPiece> | undefined;
  return {
    model: "all-MiniLM-L6-v2",
    version: "int8-1",
    dimension: DIMENSION,
    ...modelQueue({ process, dimension: DIMENSION, textChars: TEXT_CHARS }),
    // In this process: a look-up of a few words must not wait for the model.
    async coverage(text) {
      tokenizer ??= readFile(join(modelDir, "tokenizer.json"), "utf8").then((json) => wordPiece(JSON.parse(json)));
      return (await tokenizer).coverage(text);
    },
  };
}

/** Returns why the native runtime cannot be loaded on this machine, or `undefined` if it can. */
export async function minilmObstacle({
  modelDir = builtFile("models/minilm"),
}: Pick<MinilmOptions, "modelDir"> = {}): Promise<string | undefined> {
  const model = modelProcess<EmbedRequest, EmbedReply>({ entry: ENTRY, args: [modelDir], idleMs: 0 });
  try {
    const reply = await model.ask({});
    return "failure" in reply ? reply.failure : undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    await model.stop();
  }
}
