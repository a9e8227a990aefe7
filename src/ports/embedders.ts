import type { Embedder } from "./embedder.ts";
import type { VectorSpace } from "./embedding-store.ts";

export type CollectionName = "checkpoints" | "knowledge" | "code";

/** The embedders at hand. A stored vector space is served by the embedder that made it, or by none. */
export interface Embedders {
  /** The one with which a new collection starts; `undefined` when embedding is switched off. */
  preferred(collection: CollectionName): Promise<Embedder | undefined>;
  /** The best one for a collection, however long it takes: what an upgrade moves to. */
  best(collection: CollectionName): Promise<Embedder | undefined>;
  /** The embedder for vectors already stored; `undefined` when it is not configured here. */
  serving(space: VectorSpace): Promise<Embedder | undefined>;
  /** By a model's name, as a person types it: `minilm`, `static`, `text-embedding-3-small`. */
  named(name: string): Promise<Embedder | undefined>;
  /** The names that `named` knows. */
  readonly names: readonly string[];
  close(): Promise<void>;
}
