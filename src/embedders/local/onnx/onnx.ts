import { builtFile } from "../../../files/built-file.ts";
import { modelProcess } from "../model-process.ts";
import { modelQueue, type ProcessEmbedder } from "../model-queue.ts";
import type { EmbedReply, EmbedRequest } from "../serve-embeddings.ts";
import { fingerprint } from "./fingerprint.ts";
import { type OnnxOptions, readModelFolder } from "./model-folder.ts";
import type { OnnxProcessOptions } from "./onnx-process.ts";

const ENTRY = builtFile("embedders/local/onnx/onnx-process.js");
/** Characters sent per token that the model reads; more never fit. */
const CHARS_PER_TOKEN = 32;

/** Opens a model folder of the user's own. The model runs in a process that starts on first use and ends when idle. */
export async function onnxEmbedder(options: OnnxOptions): Promise<ProcessEmbedder> {
  const folder = readModelFolder(options);
  const { version, files } = await fingerprint(folder);
  const { model, modelFile, tokenizerFile, dimension, maxTokens, pooling, defaultPooling, queryPrefix, documentPrefix } = folder;
  const shortened = options.dimensions !== undefined;
  const spec: OnnxProcessOptions = { modelFile, tokenizerFile, dimension, maxTokens, pooling, defaultPooling, files, shortened };
  const process = modelProcess<EmbedRequest, EmbedReply>({ entry: ENTRY, args: [JSON.stringify(spec)], idleMs: options.idleMs });
  const queue = modelQueue({ process, dimension, textChars: maxTokens * CHARS_PER_TOKEN });
  return {
    model,
    version,
    dimension,
    ...queue,
    embed(texts, embedOptions = {}) {
      const prefix = embedOptions.purpose === "query" ? queryPrefix : documentPrefix;
      return queue.embed(prefix === "" ? texts : texts.map((text) => prefix + text), embedOptions);
    },
  };
}
