import { retryDelayMs } from "../../scheduling/retry.ts";
import type { QdrantClient } from "./client.ts";
import { type Mirrored, sync } from "./sync.ts";

/** Copies changes to Qdrant in the background. Runs one pass per collection at a time and never keeps the process alive. */
export interface Feeder {
  schedule(mirrored: Mirrored): void;
  /** Copies pending changes for a short time; the rest stays in the outbox for the next process. */
  close(): Promise<void>;
}

export interface FeederOptions {
  readonly firstDelayMs?: number;
  readonly longestDelayMs?: number;
  readonly closeMs?: number;
}

export function feeder(client: QdrantClient, { firstDelayMs = 100, longestDelayMs = 60_000, closeMs = 2_000 }: FeederOptions = {}): Feeder {
  const backoff = { firstMs: firstDelayMs, maxMs: longestDelayMs };
  const stop = new AbortController();
  const waiting = new Map<string, { readonly mirrored: Mirrored; readonly timer: NodeJS.Timeout }>();
  const running = new Map<string, Promise<void>>();
  /** Requests that arrived during a pass, which may have missed their changes. */
  const again = new Map<string, Mirrored>();
  let closing = false;

  function scheduleAfter(mirrored: Mirrored, attempt: number): void {
    if (closing) return;
    const before = waiting.get(mirrored.prefix);
    if (before) return void waiting.set(mirrored.prefix, { ...before, mirrored: both(before.mirrored, mirrored) });
    const timer = setTimeout(() => start(waiting.get(mirrored.prefix)!.mirrored, attempt), retryDelayMs(backoff, attempt));
    timer.unref();
    waiting.set(mirrored.prefix, { mirrored, timer });
  }

  function start(mirrored: Mirrored, attempt: number): void {
    waiting.delete(mirrored.prefix);
    const pass = sync(client, mirrored, stop.signal).then(
      () => true,
      () => false, // Qdrant or the database is unavailable: the next pass tries again
    );
    running.set(
      mirrored.prefix,
      pass.then((done) => {
        running.delete(mirrored.prefix);
        const more = again.get(mirrored.prefix);
        again.delete(mirrored.prefix);
        if (!done) scheduleAfter(more ? both(mirrored, more) : mirrored, attempt + 1);
        else if (more) scheduleAfter(more, 1);
      }),
    );
  }

  return {
    schedule(mirrored) {
      if (running.has(mirrored.prefix)) again.set(mirrored.prefix, both(again.get(mirrored.prefix), mirrored));
      else scheduleAfter(mirrored, 1);
    },
    async close() {
      closing = true;
      for (const { mirrored, timer } of [...waiting.values()]) {
        clearTimeout(timer);
        start(mirrored, 1);
      }
      const giveUp = setTimeout(() => stop.abort(), closeMs);
      await Promise.all(running.values());
      clearTimeout(giveUp);
    },
  };
}

/** Merges two requests: the newer one, and thorough if either is. */
function both(before: Mirrored | undefined, mirrored: Mirrored): Mirrored {
  return before?.thorough ? { ...mirrored, thorough: true } : mirrored;
}
