import { CairnError } from "../model/errors.ts";
import { sha256Hex } from "../model/ids.ts";
import { vectorProblem } from "../model/vector-problem.ts";
import type { Embedder, EmbedOptions } from "../ports/embedder.ts";

export interface CacheStats {
  readonly hits: number;
  readonly misses: number;
  readonly entries: number;
}

export interface CacheOptions {
  /** Milliseconds that a vector stays valid; default 15 minutes. */
  readonly ttlMs?: number;
  /** Limit of cached vectors; 10,000 of 384 dimensions take 15 MB. */
  readonly entries?: number;
  readonly now?: () => number;
  /** Called with the texts that were cached and the texts that had to be embedded. */
  readonly onUse?: ((use: { readonly hits: readonly string[]; readonly misses: readonly string[] }) => void) | undefined;
}

export interface CachedEmbedder extends Embedder {
  stats(): CacheStats;
}

/** Caches vectors in memory and evicts the least recently used. Concurrent requests for equal texts share one call. */
export function cachedEmbedder(
  inner: Embedder,
  { ttlMs = 15 * 60_000, entries = 10_000, now = Date.now, onUse }: CacheOptions = {},
): CachedEmbedder {
  const cache = new Map<string, { readonly vector: Promise<Float32Array>; readonly until: number }>();
  let hits = 0;
  let misses = 0;
  // The separator occurs in no model name, so two keys cannot collide.
  const keyOf = (text: string, purpose: string) => sha256Hex(`${inner.model}\n${inner.version}\n${inner.dimension}\n${purpose}\n${text}`);

  /** Embeds and validates, so that the cache never holds an invalid vector. */
  async function embedValid(texts: readonly string[], options: EmbedOptions): Promise<Float32Array[]> {
    const vectors = await inner.embed(texts, options);
    const problem = vectorProblem(vectors, texts.length, inner.dimension);
    if (problem) throw new CairnError("unavailable", `The model ${inner.model} returned invalid vectors: ${problem}.`);
    return vectors;
  }

  function lookUp(key: string): Promise<Float32Array> | undefined {
    const found = cache.get(key);
    if (!found) return undefined;
    cache.delete(key);
    if (found.until <= now()) return undefined;
    cache.set(key, found);
    return found.vector;
  }

  return {
    model: inner.model,
    version: inner.version,
    dimension: inner.dimension,
    stats: () => ({ hits, misses, entries: cache.size }),
    async embed(texts, options = {}) {
      const { purpose = "document", signal } = options;
      const keys = texts.map((text) => keyOf(text, purpose));
      const vectors = new Map<string, Promise<Float32Array>>();
      const wanted = new Map<string, string>();
      for (const [index, key] of keys.entries()) {
        const cached = vectors.get(key) ?? lookUp(key);
        if (cached) vectors.set(key, cached);
        else wanted.set(key, texts[index]!);
      }
      hits += texts.length - wanted.size;
      misses += wanted.size;
      onUse?.({ hits: texts.filter((_, index) => !wanted.has(keys[index]!)), misses: [...wanted.values()] });
      if (wanted.size > 0) {
        // The abort of one caller must not fail the others that wait for the same text: they embed it again.
        const asked = embedValid([...wanted.values()], options);
        for (const [index, key] of [...wanted.keys()].entries()) {
          const vector = asked.then((all) => all[index]!);
          vectors.set(key, vector);
          cache.set(key, { vector, until: now() + ttlMs });
          vector.catch(() => {
            if (cache.get(key)?.vector === vector) cache.delete(key);
          });
        }
        for (const oldest of cache.keys()) {
          if (cache.size <= entries) break;
          cache.delete(oldest);
        }
      }
      return Promise.all(
        keys.map(async (key, index) => {
          try {
            return (await vectors.get(key)!).slice();
          } catch (error) {
            signal?.throwIfAborted();
            if (wanted.has(key) || !isAbort(error)) throw error;
            return (await inner.embed([texts[index]!], options))[0]!; // the other caller aborted, this one did not
          }
        }),
      );
    },
    close: () => inner.close(),
  };
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && (error.name === "AbortError" || error.name === "TimeoutError");
}
