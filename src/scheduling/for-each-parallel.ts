import { waitLimitMs } from "./calls.ts";

export interface ParallelOptions {
  /** Items that are worked on at the same time. */
  readonly concurrency: number;
  readonly signal?: AbortSignal | undefined;
  /** Returns true when no further item is needed. */
  readonly isDone?: (() => boolean) | undefined;
}

/**
 * Works on the items in their order, several at a time, and begins none once the time of the current call is nearly over. Returns the
 * items that were not begun for lack of time. The first error of `work` is raised.
 */
export async function forEachParallel<T>(
  items: readonly T[],
  { concurrency, signal, isDone = () => false }: ParallelOptions,
  work: (item: T) => Promise<void>,
): Promise<readonly T[]> {
  let next = 0;
  let isLate = false;
  let failure: { readonly error: unknown } | undefined;
  const worker = async () => {
    while (next < items.length && !failure && !isDone()) {
      signal?.throwIfAborted();
      isLate ||= waitLimitMs() <= 0;
      if (isLate) return;
      try {
        await work(items[next++]!);
      } catch (error) {
        failure ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, worker));
  if (failure) throw failure.error;
  return isLate ? items.slice(next) : [];
}
