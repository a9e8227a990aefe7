import { setImmediate as nextTurn } from "node:timers/promises";
import type { EmbeddingFigures } from "../model/embedding-figures.ts";
import { CairnError } from "../model/errors.ts";
import { sha256Hex } from "../model/ids.ts";
import type { Embedder, EmbedOptions } from "../ports/embedder.ts";
import { estimateTokens } from "../text/estimate-tokens.ts";
import type { Redact } from "../text/redact.ts";

/** An embedder as `open` offers it to the services. */
export interface EmbedderPipeline extends Embedder {
  /** Returns what the embedder did and cost so far. */
  usage(): EmbeddingFigures;
}

/** Puts redaction, a cache, a cost meter and a concurrency limit in front of an embedder, in this order. */
export function embedderPipeline(embedder: Embedder, redact: Redact): EmbedderPipeline {
  const meter = costMeter(PRICE_PER_MILLION[embedder.model] ?? 0);
  const cached = cachedEmbedder(meter.metered(limitedEmbedder(embedder)), { onUse: ({ hits }) => meter.saved(hits) });
  return {
    ...redactedEmbedder(cached, redact),
    usage() {
      const { hits, misses } = cached.stats();
      return { cacheHits: hits, cacheMisses: misses, ...meter.read() };
    },
  };
}

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

interface CachedEmbedder extends Embedder {
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
    coverage: inner.coverage,
    threadModel: inner.threadModel,
    countElsewhere: inner.countElsewhere,
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

/** Returns what is wrong with the vectors of an embedder, or `undefined` if they are valid. */
function vectorProblem(vectors: readonly Float32Array[], count: number, dimension: number): string | undefined {
  if (vectors.length !== count) return `it returned ${vectors.length} vectors for ${count} texts`;
  for (const vector of vectors) {
    if (vector.length !== dimension) return `it returned a vector of ${vector.length} dimensions instead of ${dimension}`;
    let square = 0;
    for (const value of vector) square += value * value;
    if (!(Math.abs(square - 1) < 0.01)) return "it returned a vector that is not of unit length or not finite";
  }
  return undefined;
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && (error.name === "AbortError" || error.name === "TimeoutError");
}

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
    coverage: inner.coverage,
    threadModel: inner.threadModel,
    countElsewhere: inner.countElsewhere,
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

/** Tokens and cost of embedding, and what the cache has saved. */
export interface Cost {
  readonly texts: number;
  readonly tokens: number;
  readonly dollars: number;
  readonly savedTokens: number;
  readonly savedDollars: number;
}

export interface CostMeter {
  /** Counts the texts that reach the model: the tokens that the provider billed, or an estimate where it reports none. Sits inside the cache. */
  metered(embedder: Embedder): Embedder;
  /** Counts the texts that the cache answered. */
  saved(texts: readonly string[]): void;
  read(): Cost;
}

/** Dollars per million tokens. Local models cost nothing. */
const PRICE_PER_MILLION: Readonly<Record<string, number>> = {
  "text-embedding-3-small": 0.02,
  "text-embedding-3-large": 0.13,
  "text-embedding-ada-002": 0.1,
};

/** Characters of a token, on average over prose and code. */
const CHARS_PER_TOKEN = 4;

export function costMeter(pricePerMillion: number): CostMeter {
  let texts = 0;
  let tokens = 0;
  let savedTokens = 0;
  // The exact estimate takes as long as the static model itself, and the tokens of a local model are never billed.
  const tokensOf = pricePerMillion > 0 ? estimateTokens : (text: string) => Math.ceil(text.length / CHARS_PER_TOKEN);
  const count = (some: readonly string[]) => some.reduce((sum, text) => sum + tokensOf(text), 0);
  const dollars = (some: number) => (some * pricePerMillion) / 1_000_000;
  return {
    metered: (embedder) => ({
      model: embedder.model,
      version: embedder.version,
      dimension: embedder.dimension,
      coverage: embedder.coverage,
      threadModel: embedder.threadModel,
      countElsewhere(counted, chars) {
        texts += counted;
        tokens += Math.ceil(chars / CHARS_PER_TOKEN);
      },
      async embed(some, options) {
        let billed: number | undefined;
        const vectors = await embedder.embed(some, {
          ...options,
          // Counted at once: the provider charges for a request even if a later one of the same call fails.
          onTokens(counted) {
            billed = (billed ?? 0) + counted;
            tokens += counted;
          },
        });
        texts += some.length;
        if (billed === undefined) tokens += count(some);
        return vectors;
      },
      close: () => embedder.close(),
    }),
    saved(some) {
      savedTokens += count(some);
    },
    read: () => ({ texts, tokens, dollars: dollars(tokens), savedTokens, savedDollars: dollars(savedTokens) }),
  };
}

/** Redacts about this many characters before other work of the process gets a turn: a few milliseconds. */
const CHARS_PER_TURN = 50_000;

/**
 * Removes secrets from every text before the embedder sees it. `openEmbedders` puts this layer around every embedder, so a caller
 * cannot send a secret to a provider by forgetting to redact. It is the outermost layer: the cache holds redacted texts only.
 */
export function redactedEmbedder(inner: Embedder, redact: Redact): Embedder {
  return {
    model: inner.model,
    version: inner.version,
    dimension: inner.dimension,
    coverage: inner.coverage,
    threadModel: inner.threadModel,
    countElsewhere: inner.countElsewhere,
    async embed(texts, options) {
      const clean: string[] = [];
      let chars = 0;
      for (const text of texts) {
        chars += text.length;
        if (chars > CHARS_PER_TURN && clean.length > 0) {
          await nextTurn();
          options?.signal?.throwIfAborted();
          chars = text.length;
        }
        clean.push(redact(text).text);
      }
      return inner.embed(clean, options);
    },
    close: () => inner.close(),
  };
}
