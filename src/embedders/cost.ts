import type { Embedder } from "../ports/embedder.ts";
import { estimateTokens } from "../text/budget.ts";

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
export const PRICE_PER_MILLION: Readonly<Record<string, number>> = {
  "text-embedding-3-small": 0.02,
  "text-embedding-3-large": 0.13,
  "text-embedding-ada-002": 0.1,
};

export function costMeter(pricePerMillion: number): CostMeter {
  let texts = 0;
  let tokens = 0;
  let savedTokens = 0;
  const count = (some: readonly string[]) => some.reduce((sum, text) => sum + estimateTokens(text), 0);
  const dollars = (some: number) => (some * pricePerMillion) / 1_000_000;
  return {
    metered: (embedder) => ({
      model: embedder.model,
      version: embedder.version,
      dimension: embedder.dimension,
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
