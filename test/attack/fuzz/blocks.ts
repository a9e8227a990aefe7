import type { Block } from "../server.ts";

/** When a request was in flight, in milliseconds since the epoch. */
export interface Flight {
  readonly name: string;
  readonly startedAt: number;
  readonly endedAt: number;
}

export interface ExplainedBlock extends Block {
  /** Requests in flight, ordered by their end after the block: the first one is the likely cause. */
  readonly inFlight: readonly string[];
}

/** Names the requests that were in flight during each block that is longer than the limit. */
export function explainBlocks(blocks: readonly Block[], flights: readonly Flight[], limitMs: number): ExplainedBlock[] {
  return blocks
    .filter(({ blockedMs }) => blockedMs > limitMs)
    .map((block) => ({
      ...block,
      inFlight: flights
        .filter(({ startedAt, endedAt }) => startedAt <= block.endedAt && endedAt >= block.endedAt - block.blockedMs)
        .sort((a, b) => a.endedAt - b.endedAt)
        .map(({ name }) => name),
    }));
}
