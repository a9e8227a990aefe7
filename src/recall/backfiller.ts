import type { Embedders } from "../ports/embedders.ts";
import type { EmbeddingStore } from "../ports/embedding-store.ts";
import { withoutTimeLimit } from "../scheduling/time-limit.ts";
import { backfill } from "./fill.ts";

/** Embeds later what could not be embedded when it was saved. One pass per collection at a time; never keeps the process alive. */
export interface Backfiller {
  schedule(key: string, store: EmbeddingStore): void;
  /** Ends all passes and waits for the ones under way. */
  close(): Promise<void>;
}

export interface BackfillerOptions {
  readonly embedders: Embedders;
  readonly firstDelayMs?: number;
  readonly longestDelayMs?: number;
  /** More collections than this wait for their next save or `cairn embeddings verify`. */
  readonly maxWaiting?: number;
}

export function backfiller({
  embedders,
  firstDelayMs = 1_000,
  longestDelayMs = 60_000,
  maxWaiting = 1_000,
}: BackfillerOptions): Backfiller {
  const stop = new AbortController();
  const waiting = new Map<string, NodeJS.Timeout>();
  const running = new Map<string, Promise<void>>();

  function later(key: string, store: EmbeddingStore, delayMs: number): void {
    if (stop.signal.aborted || waiting.has(key) || running.has(key) || waiting.size >= maxWaiting) return;
    const timer = setTimeout(() => {
      waiting.delete(key);
      running.set(
        key,
        withoutTimeLimit(() => pass(key, store, delayMs)),
      );
    }, delayMs);
    timer.unref();
    waiting.set(key, timer);
  }

  async function pass(key: string, store: EmbeddingStore, delayMs: number): Promise<void> {
    let behind = true;
    try {
      behind = (await backfill(store, embedders, { signal: stop.signal })).failed > 0;
    } catch {
      // The database or the provider is away: tried again later.
    } finally {
      running.delete(key);
    }
    if (behind) later(key, store, Math.min(delayMs * 2, longestDelayMs));
  }

  return {
    schedule: (key, store) => later(key, store, firstDelayMs),
    async close() {
      stop.abort();
      for (const timer of waiting.values()) clearTimeout(timer);
      waiting.clear();
      await Promise.allSettled(running.values());
    },
  };
}
