import { retryDelayMs } from "../../scheduling/retry.ts";
import type { QdrantHealth } from "./health.ts";
import { COMPARISONS, type Comparison } from "./sync.ts";

/** Work for Qdrant, which is repeated until it succeeds. */
export interface FeederTask {
  /** Tasks with the same key never run at the same time; a newer one replaces one that waits. */
  readonly key: string;
  run(comparison: Comparison, signal: AbortSignal): Promise<void>;
}

/** Copies changes to Qdrant in the background. Runs one pass per collection at a time and never keeps the process alive. */
export interface Feeder {
  schedule(task: FeederTask, comparison: Comparison): void;
  /** Forgets the task of this key. A pass that runs is not repeated. */
  cancel(key: string): void;
  /** Copies pending changes for a short time; the rest stays in the outbox for the next process. */
  close(): Promise<void>;
}

export interface FeederOptions {
  readonly firstDelayMs?: number;
  readonly longestDelayMs?: number;
  readonly closeMs?: number;
}

/** Passes at the same time, so that a server with thousands of projects is not flooded after a restart. */
const PASSES_MAX = 4;

interface Entry {
  task: FeederTask;
  comparison: Comparison;
  attempt: number;
  running: boolean;
  /** The comparison of a request that arrived during a pass, which may have missed its changes. */
  again: Comparison | undefined;
  timer: NodeJS.Timeout | undefined;
}

export function feeder(health: QdrantHealth, { firstDelayMs = 100, longestDelayMs = 60_000, closeMs = 2_000 }: FeederOptions = {}): Feeder {
  const backoff = { firstMs: firstDelayMs, maxMs: longestDelayMs };
  const stop = new AbortController();
  const entries = new Map<string, Entry>();
  const ready: Entry[] = [];
  const passes = new Set<Promise<void>>();
  let closing = false;

  function enqueue(entry: Entry): void {
    entry.timer = undefined;
    ready.push(entry);
    startReady();
  }

  function startReady(): void {
    while (passes.size < PASSES_MAX && ready.length > 0) {
      const entry = ready.shift()!;
      if (entries.get(entry.task.key) !== entry) continue;
      const pauseMs = health.serverPauseMs();
      if (pauseMs === 0 && !stop.signal.aborted) start(entry);
      else if (!closing) wait(entry, pauseMs);
    }
  }

  function wait(entry: Entry, delayMs: number): void {
    entry.timer = setTimeout(() => enqueue(entry), delayMs);
    entry.timer.unref();
  }

  function start(entry: Entry): void {
    const { task, comparison } = entry;
    entry.running = true;
    const pass = task.run(comparison, stop.signal).then(
      () => {
        health.succeeded(task.key);
        return true;
      },
      (error: unknown) => {
        health.failed(task.key, error); // Qdrant or the database is unavailable: the next pass tries again
        return false;
      },
    );
    const ended = pass.then((done) => {
      passes.delete(ended);
      finish(entry, done);
      startReady();
    });
    passes.add(ended);
  }

  function finish(entry: Entry, done: boolean): void {
    const { task, again, comparison, attempt } = entry;
    if (entries.get(task.key) !== entry) return; // cancelled
    if (done ? again === undefined : closing) return void entries.delete(task.key);
    entry.running = false;
    entry.again = undefined;
    entry.attempt = done ? 1 : attempt + 1;
    // A server that failed may have lost points.
    entry.comparison = done ? again! : more(more(comparison, "count"), again ?? "none");
    if (closing) ready.push(entry);
    else wait(entry, retryDelayMs(backoff, entry.attempt));
  }

  return {
    schedule(task, comparison) {
      if (closing) return;
      const entry = entries.get(task.key);
      if (!entry) {
        const added = { task, comparison, attempt: 1, running: false, again: undefined, timer: undefined };
        entries.set(task.key, added);
        return wait(added, retryDelayMs(backoff, 1));
      }
      entry.task = task;
      if (entry.running) entry.again = more(entry.again ?? "none", comparison);
      else entry.comparison = more(entry.comparison, comparison);
    },
    cancel(key) {
      clearTimeout(entries.get(key)?.timer);
      entries.delete(key);
    },
    async close() {
      closing = true;
      const giveUp = setTimeout(() => stop.abort(), closeMs);
      for (const entry of entries.values()) {
        if (entry.timer === undefined) continue;
        clearTimeout(entry.timer);
        entry.timer = undefined;
        ready.push(entry);
      }
      startReady();
      while (passes.size > 0) await Promise.race(passes);
      clearTimeout(giveUp);
    },
  };
}

/** Returns the more thorough comparison. */
const more = (a: Comparison, b: Comparison): Comparison => COMPARISONS[Math.max(COMPARISONS.indexOf(a), COMPARISONS.indexOf(b))]!;
