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
  /** How long a vector is good for; the seed's quarter of an hour. */
  readonly ttlMs?: number;
  /** How many vectors are kept; 10,000 of 384 dimensions are 15 MB. */
  readonly entries?: number;
  readonly now?: () => number;
  /** Told what was found and what had to be embedded. */
  readonly onUse?: ((use: { readonly hits: readonly string[]; readonly misses: readonly string[] }) => void) | undefined;
}

export interface CachedEmbedder extends Embedder {
  stats(): CacheStats;
}

/** Keeps recent vectors in memory, the least recently used going first. Equal texts that are asked for at the same time share one call. */
export function cachedEmbedder(
  inner: Embedder,
  { ttlMs = 15 * 60_000, entries = 10_000, now = Date.now, onUse }: CacheOptions = {},
): CachedEmbedder {
  const cache = new Map<string, { readonly vector: Promise<Float32Array>; readonly until: number }>();
  let hits = 0;
  let misses = 0;
  // What stands between model and text cannot be part of either.
  const keyOf = (text: string, purpose: string) => sha256Hex(`${inner.model}\n${inner.version}\n${inner.dimension}\n${purpose}\n${text}`);

  /** A wrong vector must not be remembered for a quarter of an hour. */
  async function checked(texts: readonly string[], options: EmbedOptions): Promise<Float32Array[]> {
    const vectors = await inner.embed(texts, options);
    const problem = vectorProblem(vectors, texts.length, inner.dimension);
    if (problem) throw new CairnError("unavailable", `The model ${inner.model} is not to be trusted: ${problem}.`);
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
        // One caller's abort must not spoil the vector for others who wait for the same text: they would ask again.
        const asked = checked([...wanted.values()], options);
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
            return (await inner.embed([texts[index]!], options))[0]!; // the other caller gave up, we did not
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
