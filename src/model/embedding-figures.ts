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
