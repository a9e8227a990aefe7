import { metrics } from "@opentelemetry/api";
import type { EmbeddingFigures, SharingFigures } from "../model/embedding-figures.ts";
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

const SHARING: readonly (readonly [name: string, description: string, figure: Exclude<keyof SharingFigures, "leads">])[] = [
  ["embedding.shared.requests", "Requests that another process answered with its model", "sent"],
  ["embedding.shared.served_texts", "Texts that this process embedded for others", "served"],
  ["embedding.shared.fallbacks", "Requests that no other process answered, so that this one embedded for itself", "fallbacks"],
];

/** Reports the figures whenever metrics are collected; costs nothing when they are not. Returns what ends it. */
export function observeEmbedding(usage: () => EmbeddingFigures, sharing: () => SharingFigures): () => void {
  const meter = metrics.getMeter("cairn", VERSION);
  const observe = (kind: "createObservableCounter" | "createObservableGauge", name: string, description: string, value: () => number) => {
    const instrument = meter[kind](name, { description });
    const report = (result: { observe(value: number): void }) => result.observe(value());
    instrument.addCallback(report);
    return () => instrument.removeCallback(report);
  };
  const stops = [
    ...COUNTERS.map(([name, description, figure]) => observe("createObservableCounter", name, description, () => usage()[figure])),
    ...SHARING.map(([name, description, figure]) => observe("createObservableCounter", name, description, () => sharing()[figure])),
    observe("createObservableGauge", "embedding.shared.leads", "1 if this process embeds for others", () => (sharing().leads ? 1 : 0)),
  ];
  return () => {
    for (const stop of stops) stop();
  };
}
