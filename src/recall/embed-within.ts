import { vectorProblem } from "../model/vector-problem.ts";
import type { Embedder } from "../ports/embedder.ts";
import { waitLimitMs } from "../scheduling/time-limit.ts";

export type Embedded =
  | { readonly vectors: readonly Float32Array[]; readonly failure?: undefined }
  | { readonly failure: string; readonly vectors?: undefined };

export interface EmbedWithinOptions {
  readonly timeoutMs: number;
  readonly purpose: "query" | "document";
  readonly signal?: AbortSignal | undefined;
}

/**
 * Embeds texts within a time limit, or returns the reason of the failure: an unavailable or slow embedder degrades a search and never
 * fails a save. Vectors are validated, because a wrong one would spoil every later ranking. Only an abort by the caller is raised.
 */
export async function embedWithin(
  embedder: Embedder,
  texts: readonly string[],
  { timeoutMs, purpose, signal }: EmbedWithinOptions,
): Promise<Embedded> {
  // Half of the remaining time stays for the rest of the call, which can answer without vectors but not without time.
  const limitMs = Math.floor(Math.min(timeoutMs, waitLimitMs(Number.POSITIVE_INFINITY) / 2));
  const timeout = AbortSignal.timeout(limitMs);
  const either = signal ? AbortSignal.any([signal, timeout]) : timeout;
  try {
    const vectors = await untilAborted(embedder.embed(texts, { signal: either, purpose }), either);
    const problem = vectorProblem(vectors, texts.length, embedder.dimension);
    return problem ? { failure: problem } : { vectors };
  } catch (error) {
    signal?.throwIfAborted();
    if (timeout.aborted) return { failure: `no answer within ${limitMs} ms` };
    return { failure: error instanceof Error ? error.message : String(error) };
  }
}

async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let abort: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    if (abort) signal.removeEventListener("abort", abort);
    work.catch(() => {}); // a failure after the time limit is ignored
  }
}
