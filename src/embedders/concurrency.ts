import { CairnError } from "../model/errors.ts";
import type { Embedder } from "../ports/embedder.ts";

export interface ConcurrencyOptions {
  readonly atOnce?: number;
  /** Limit of waiting calls. Further calls fail at once, so that a stuck model does not exhaust memory. */
  readonly waiting?: number;
}

/** Limits concurrent calls; further calls wait in order. */
export function limitedEmbedder(inner: Embedder, { atOnce = 4, waiting = 1_000 }: ConcurrencyOptions = {}): Embedder {
  const queue: (() => void)[] = [];
  let running = 0;

  async function turn(signal: AbortSignal | undefined): Promise<void> {
    if (running < atOnce) {
      running++;
      return;
    }
    if (queue.length >= waiting)
      throw new CairnError("unavailable", `${queue.length} embedding calls are waiting. Try again later.`, { retryAfterMs: 1_000 });
    await new Promise<void>((resolve, reject) => {
      const start = () => {
        signal?.removeEventListener("abort", giveUp);
        running++;
        resolve();
      };
      const giveUp = () => {
        queue.splice(queue.indexOf(start), 1);
        reject(signal!.reason);
      };
      queue.push(start);
      signal?.addEventListener("abort", giveUp, { once: true });
    });
  }

  return {
    model: inner.model,
    version: inner.version,
    dimension: inner.dimension,
    async embed(texts, options = {}) {
      options.signal?.throwIfAborted();
      await turn(options.signal);
      try {
        return await inner.embed(texts, options);
      } finally {
        running--;
        queue.shift()?.();
      }
    },
    close: () => inner.close(),
  };
}
