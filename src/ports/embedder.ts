/** Options of one call of an embedder. */
export interface EmbedOptions {
  readonly signal?: AbortSignal | undefined;
  /** Some models embed a query differently from a document. */
  readonly purpose?: "query" | "document" | undefined;
  /** Receives the billed tokens, once per request. Local embedders never call it. */
  readonly onTokens?: ((tokens: number) => void) | undefined;
}

/** How another thread opens the same model, where that takes little time and memory. */
export interface ThreadModel {
  /** The module, by its path in dist/, its function that returns the embedder, and the options of that function. */
  readonly module: string;
  readonly create: string;
  readonly options: Readonly<Record<string, unknown>>;
}

/** Embeds texts. Model, version and dimension identify a vector space; two spaces are never mixed. */
export interface Embedder {
  readonly model: string;
  readonly version: string;
  readonly dimension: number;
  /** Characters of a text that the model reads at most. What follows them changes no vector. Absent: unknown. */
  readonly textChars?: number | undefined;
  /** Returns one unit-length vector per text, in order. */
  embed(texts: readonly string[], options?: EmbedOptions): Promise<Float32Array[]>;
  /**
   * Returns the share of a text's words that the model's vocabulary knows, 0…1. The semantic ranking counts less for a query that
   * falls apart into single characters. Absent: the model is taken to read every text.
   */
  readonly coverage?: ((text: string) => Promise<number>) | undefined;
  readonly threadModel?: ThreadModel | undefined;
  /** Counts texts that another thread embedded with `threadModel`. */
  readonly countElsewhere?: ((texts: number, chars: number) => void) | undefined;
  close(): Promise<void>;
}
