/** Options of one call of an embedder. */
export interface EmbedOptions {
  readonly signal?: AbortSignal | undefined;
  /** Some models embed a question differently from a text. */
  readonly purpose?: "query" | "document" | undefined;
  /** Receives the tokens that a provider billed, once per request. Embedders without a bill never call it. */
  readonly onTokens?: ((tokens: number) => void) | undefined;
}

/** Turns texts into vectors. Model, version and dimension together name a vector space; two spaces are never mixed. */
export interface Embedder {
  readonly model: string;
  readonly version: string;
  readonly dimension: number;
  /** One unit-length vector per text, in order. */
  embed(texts: readonly string[], options?: EmbedOptions): Promise<Float32Array[]>;
  close(): Promise<void>;
}
