import type { Embedder } from "./embedder.ts";
import type { VectorSpace } from "./embedding-store.ts";

export type CollectionName = "checkpoints" | "knowledge" | "code";

/** The available embedders. A stored vector space is served only by the embedder that created it. */
export interface Embedders {
  /** Returns the embedder of a new collection; `undefined` if embedding is disabled. */
  preferred(collection: CollectionName): Promise<Embedder | undefined>;
  /** Returns the best embedder of a collection, for re-embedding. */
  best(collection: CollectionName): Promise<Embedder | undefined>;
  /** Returns the embedder of stored vectors; `undefined` if it is not configured. */
  serving(space: VectorSpace): Promise<Embedder | undefined>;
  /** Returns the embedder of a model: `minilm`, `static`, `text-embedding-3-small`. */
  named(name: string): Promise<Embedder | undefined>;
  /** The names that `named` accepts. */
  readonly names: readonly string[];
  close(): Promise<void>;
}
