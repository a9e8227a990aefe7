/** Runs work while there is time. Returns `undefined` for work that fails, is late, or would start too late. */
export type Within = <T>(work: () => Promise<T>) => Promise<T | undefined>;

export interface TimeBudget {
  readonly within: Within;
  end(): void;
}

/**
 * Starts a time budget. Work that blocks the thread, as SQLite does, cannot be interrupted. So the time is checked before each piece, and
 * pieces are small.
 */
export function timeBudget(limitMs: number): TimeBudget {
  const deadline = performance.now() + limitMs;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), limitMs);
  });
  return {
    within: async (work) => {
      if (performance.now() >= deadline) return undefined;
      try {
        return await Promise.race([work().catch(() => undefined), late]); // a damaged or busy index must not fail a search
      } catch {
        return undefined;
      }
    },
    end: () => clearTimeout(timer),
  };
}
