import type { Embedders } from "../ports/embedders.ts";
import type { EmbeddingStore } from "../ports/embedding-store.ts";
import { withoutTimeLimit } from "../scheduling/calls.ts";
import { retryDelayMs } from "../scheduling/retry.ts";
import { backfill } from "./fill.ts";

/** Embeds records in the background that were stored without a vector. Runs one pass per collection at a time and never keeps the process alive. */
export interface Backfiller {
  /**
   * Requests a pass. A request during a pass is served by another one: the running pass may already be past the new record. With
   * `atClose`, a pass that still waits when the process ends is run then, within a short time: the model is known to answer.
   */
  schedule(collection: string, store: EmbeddingStore, options?: { readonly atClose?: boolean }): void;
  /** Requests a pass unless this process has requested one for the collection before. */
  scheduleOnce(collection: string, store: EmbeddingStore): void;
  /** Runs the passes that were requested with `atClose`, cancels the others, and waits for running ones. */
  close(): Promise<void>;
}

export interface BackfillerOptions {
  readonly embedders: Embedders;
  readonly firstDelayMs?: number;
  readonly longestDelayMs?: number;
  /** Milliseconds that passes may take while the process ends. The next process continues them. */
  readonly closeMs?: number;
  /** Limit of collections that wait for a pass. Further ones wait for their next save or `cairn embeddings verify`. */
  readonly maxWaiting?: number;
}

/** Texts per call of a model while the process ends: MiniLM embeds about 15 per second. */
const CLOSING_BATCH = 4;

/** Limit of collections that `scheduleOnce` remembers. */
const REMEMBERED_MAX = 10_000;

export function backfiller({
  embedders,
  firstDelayMs = 1_000,
  longestDelayMs = 60_000,
  closeMs = 2_000,
  maxWaiting = 1_000,
}: BackfillerOptions): Backfiller {
  const backoff = { firstMs: firstDelayMs, maxMs: longestDelayMs };
  const stop = new AbortController();
  const waiting = new Map<string, NodeJS.Timeout>();
  const running = new Map<string, Promise<void>>();
  const requested = new Set<string>();
  const seen = new Set<string>();
  const atClose = new Map<string, EmbeddingStore>();
  let closing = false;

  function schedulePass(attempt: number, collection: string, store: EmbeddingStore, follows = false): void {
    if (closing || waiting.has(collection)) return;
    // Neither this nor the pass that follows is subject to the limit: a record saved meanwhile must not stay without a vector.
    if (running.has(collection)) {
      requested.add(collection);
      return;
    }
    if (!follows && waiting.size >= maxWaiting) return;
    const timer = setTimeout(
      () => {
        waiting.delete(collection);
        running.set(
          collection,
          withoutTimeLimit(() => runPass(collection, store, attempt)),
        );
      },
      retryDelayMs(backoff, attempt),
    );
    timer.unref();
    waiting.set(collection, timer);
  }

  async function runPass(collection: string, store: EmbeddingStore, attempt: number): Promise<void> {
    let incomplete = true;
    atClose.delete(collection);
    try {
      incomplete = (await backfill(store, embedders, { signal: stop.signal, batch: closing ? CLOSING_BATCH : undefined })).failed > 0;
    } catch {
      // The database or the provider is unavailable: the next pass tries again.
    } finally {
      running.delete(collection);
    }
    const again = requested.delete(collection);
    if (incomplete) schedulePass(attempt + 1, collection, store, true);
    else if (again) schedulePass(1, collection, store, true);
  }

  const schedule: Backfiller["schedule"] = (collection, store, options) => {
    if (options?.atClose && atClose.size < maxWaiting) atClose.set(collection, store);
    schedulePass(1, collection, store);
  };
  return {
    schedule,
    scheduleOnce(collection, store) {
      if (seen.has(collection) || seen.size >= REMEMBERED_MAX) return;
      seen.add(collection);
      schedule(collection, store);
    },
    async close() {
      closing = true;
      for (const timer of waiting.values()) clearTimeout(timer);
      waiting.clear();
      if (atClose.size === 0) stop.abort();
      const giveUp = setTimeout(() => stop.abort(), closeMs);
      const last = [...atClose].map(async ([collection, store]) => {
        await running.get(collection);
        await runPass(collection, store, 1);
      });
      await Promise.allSettled([...last, ...running.values()]);
      clearTimeout(giveUp);
    },
  };
}
