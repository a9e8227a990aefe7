import { createRequire } from "node:module";

/** A request of the parent: texts to embed. Without texts, the process only reports whether the runtime can be loaded. */
export interface EmbedRequest {
  readonly texts?: readonly string[];
}

/** The reply: all vectors concatenated, or the reason of the failure. */
export type EmbedReply = { readonly vectors: Float32Array } | { readonly failure: string } | { readonly ready: true };

/** Embeds one text. */
export type EmbedText = (text: string) => Promise<Float32Array>;

interface Tensor {
  readonly dims: readonly number[];
  readonly data: Float32Array;
}

interface InferenceSession {
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  run(inputs: Readonly<Record<string, object>>, outputs: readonly string[]): Promise<Readonly<Record<string, Tensor>>>;
}

/** The part of onnxruntime-node that is used here; its package comes without type declarations. */
export interface Runtime {
  readonly Tensor: new (type: "int32" | "int64", data: Int32Array | BigInt64Array, dims: readonly number[]) => object;
  readonly InferenceSession: { create(path: string, options: Readonly<Record<string, number | boolean>>): Promise<InferenceSession> };
}

/** Options of every session. */
const SESSION_OPTIONS = {
  // One thread: more would spin between texts and use cores that other sessions need.
  intraOpNumThreads: 1,
  interOpNumThreads: 1,
  // Frees buffers after each text instead of keeping the size of the longest.
  enableCpuMemArena: false,
  enableMemPattern: false,
};

/**
 * Answers the parent's requests in a process of its own. A process and not a thread: the native runtime can be loaded only once per
 * process, so a thread could not be ended to free its memory and be started again later; and a crash in native code must not end an
 * agent session.
 */
export function serveEmbeddings(loadModel: () => Promise<EmbedText>): void {
  let loaded: Promise<EmbedText> | undefined;

  async function answer({ texts }: EmbedRequest): Promise<EmbedReply> {
    if (texts === undefined) {
      loadRuntime();
      return { ready: true };
    }
    loaded ??= loadModel();
    const embed = await loaded;
    const vectors: Float32Array[] = [];
    for (const text of texts) vectors.push(await embed(text));
    return { vectors: concatenate(vectors) };
  }

  process.on("message", (request: EmbedRequest) => {
    answer(request).then(
      (reply) => process.send?.(reply),
      (error: unknown) => process.send?.({ failure: error instanceof Error ? error.message : String(error) } satisfies EmbedReply),
    );
  });
  // The parent has ended: this process must not outlive it.
  process.on("disconnect", () => process.exit(0));
}

/** Loads the native runtime. Raises where it is not installed or does not run. */
export function loadRuntime(): Runtime {
  return createRequire(import.meta.url)("onnxruntime-node") as Runtime;
}

export function openSession(runtime: Runtime, path: string): Promise<InferenceSession> {
  return runtime.InferenceSession.create(path, SESSION_OPTIONS);
}

function concatenate(vectors: readonly Float32Array[]): Float32Array {
  const all = new Float32Array(vectors.reduce((sum, { length }) => sum + length, 0));
  let offset = 0;
  for (const vector of vectors) {
    all.set(vector, offset);
    offset += vector.length;
  }
  return all;
}
