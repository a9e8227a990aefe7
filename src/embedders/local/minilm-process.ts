// Runs all-MiniLM-L6-v2 in a process of its own; minilm.ts starts it and speaks to it. Not to be imported.
//
// A process and not a thread: the native runtime can be loaded only once per process, so a thread could not be ended to
// free its memory and be started again later; and a crash in native code must not end an agent session.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { type WordPiece, wordPiece } from "./wordpiece.ts";

/** A request of the parent: texts to embed. Without texts, the process only reports whether the runtime can be loaded. */
export interface MinilmRequest {
  readonly texts?: readonly string[];
}

/** The reply: all vectors concatenated, or the reason of the failure. */
export type MinilmReply = { readonly vectors: Float32Array } | { readonly failure: string } | { readonly ready: true };

/** The part of onnxruntime-node that is used here; its package comes without type declarations. */
interface Runtime {
  readonly Tensor: new (type: "int32", data: Int32Array, dims: readonly number[]) => object;
  readonly InferenceSession: {
    create(
      path: string,
      options: Readonly<Record<string, number | boolean>>,
    ): Promise<{
      run(inputs: Readonly<Record<string, object>>): Promise<{ readonly embedding: { readonly data: Float32Array } }>;
    }>;
  };
}

// The model was trained on texts of up to 256 tokens; more add cost and no accuracy.
const MAX_TOKENS = 256;
const DIMENSION = 384;
const modelDir = process.argv[2] ?? "";

let loaded: Promise<(text: string) => Promise<Float32Array>> | undefined;

process.on("message", (request: MinilmRequest) => {
  answer(request).then(
    (reply) => process.send?.(reply),
    (error: unknown) => process.send?.({ failure: error instanceof Error ? error.message : String(error) } satisfies MinilmReply),
  );
});
// The parent has ended: this process must not outlive it.
process.on("disconnect", () => process.exit(0));

async function answer({ texts }: MinilmRequest): Promise<MinilmReply> {
  if (texts === undefined) {
    loadRuntime();
    return { ready: true };
  }
  loaded ??= loadModel();
  const embed = await loaded;
  const vectors = new Float32Array(texts.length * DIMENSION);
  for (const [index, text] of texts.entries()) vectors.set(await embed(text), index * DIMENSION);
  return { vectors };
}

function loadRuntime(): Runtime {
  return createRequire(import.meta.url)("onnxruntime-node") as Runtime;
}

async function loadModel(): Promise<(text: string) => Promise<Float32Array>> {
  const { InferenceSession, Tensor } = loadRuntime();
  const tokenizer: WordPiece = wordPiece(JSON.parse(await readFile(join(modelDir, "tokenizer.json"), "utf8")));
  const session = await InferenceSession.create(join(modelDir, "model.onnx"), {
    // One thread: more would spin between texts and use cores that other sessions need.
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    // Frees buffers after each text instead of keeping the size of the longest.
    enableCpuMemArena: false,
    enableMemPattern: false,
  });
  return async (text) => {
    const ids = tokenizer.encode(text, MAX_TOKENS);
    const { embedding } = await session.run({ input_ids: new Tensor("int32", Int32Array.from(ids), [1, ids.length]) });
    return embedding.data;
  };
}
