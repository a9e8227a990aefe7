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
 * Embeds, or says why not, within the time given: an embedder that is down or slow degrades an answer and never costs a
 * save. What comes back is checked, because a wrong vector would spoil every later ranking. Only the caller's own abort is raised.
 */
export async function embedWithin(
  embedder: Embedder,
  texts: readonly string[],
  { timeoutMs, purpose, signal }: EmbedWithinOptions,
): Promise<Embedded> {
  // The rest of the call needs time too: without vectors it can still answer, without time it cannot.
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
    work.catch(() => {}); // its late failure is of no interest any more
  }
}
