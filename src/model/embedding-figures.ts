/** What embedding has done in a process, the cache's part included. */
export interface EmbeddingFigures {
  readonly cacheHits: number;
  readonly cacheMisses: number;
  readonly texts: number;
  readonly tokens: number;
  readonly dollars: number;
  readonly savedTokens: number;
  readonly savedDollars: number;
}

/** What sharing local models with other processes has done in a process. */
export interface SharingFigures {
  /** Whether this process embeds for others. */
  readonly leads: boolean;
  /** Requests that another process answered. */
  readonly sent: number;
  /** Texts that this process embedded for others. */
  readonly served: number;
  /** Requests that no other process answered, so that this one embedded for itself. */
  readonly fallbacks: number;
}
