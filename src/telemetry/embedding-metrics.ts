import { metrics } from "@opentelemetry/api";
import type { EmbeddingFigures } from "../model/embedding-figures.ts";
import { VERSION } from "../model/version.ts";

const COUNTERS: readonly (readonly [name: string, description: string, figure: keyof EmbeddingFigures])[] = [
  ["embedding.cache.hits", "Texts whose vector the cache had", "cacheHits"],
  ["embedding.cache.misses", "Texts that the cache did not have", "cacheMisses"],
  ["embedding.texts", "Texts that a model embedded", "texts"],
  ["embedding.tokens", "Tokens of those texts as the provider billed them, or an estimate", "tokens"],
  ["embedding.cost_dollars", "What they cost", "dollars"],
  ["embedding.saved_tokens", "Tokens that the cache saved", "savedTokens"],
  ["embedding.saved_dollars", "Dollars that the cache saved", "savedDollars"],
];

/** Reports the figures whenever metrics are collected; costs nothing when they are not. Returns what ends it. */
export function observeEmbedding(usage: () => EmbeddingFigures): () => void {
  const meter = metrics.getMeter("cairn", VERSION);
  const stops = COUNTERS.map(([name, description, figure]) => {
    const counter = meter.createObservableCounter(name, { description });
    const report = (result: { observe(value: number): void }) => result.observe(usage()[figure]);
    counter.addCallback(report);
    return () => counter.removeCallback(report);
  });
  return () => {
    for (const stop of stops) stop();
  };
}
