import { withoutTimeLimit } from "./calls.ts";

/** Work that calls start and do not wait for. */
export interface BackgroundTasks {
  /** Starts work that is not bound by the time limit of the call that starts it. Its failure is not reported. */
  start(work: (signal: AbortSignal) => Promise<unknown>): void;
  /** Asks all work to end. */
  abort(): void;
  /** Resolves when all work has ended. */
  close(): Promise<void>;
}

export function backgroundTasks(): BackgroundTasks {
  const running = new Set<Promise<unknown>>();
  const ending = new AbortController();
  return {
    start(work) {
      const task = withoutTimeLimit(() => work(ending.signal))
        .catch(() => {})
        .finally(() => running.delete(task));
      running.add(task);
    },
    abort: () => ending.abort(),
    async close() {
      ending.abort();
      await Promise.all(running);
    },
  };
}
