/** Limits concurrent work. The first failure is raised to the next caller, and no further work starts. */
export function slots(count: number) {
  const running = new Set<Promise<void>>();
  let failure: { readonly error: unknown } | undefined;
  const raise = () => {
    if (failure) throw failure.error;
  };
  return {
    /** Resolves when the work has begun. */
    async run(work: () => Promise<void>): Promise<void> {
      while (running.size >= count) await Promise.race(running);
      raise();
      const one = work()
        .catch((error: unknown) => {
          failure ??= { error };
        })
        .finally(() => running.delete(one));
      running.add(one);
    },
    /** Resolves when all work has ended, however it ended. */
    async idle(): Promise<void> {
      await Promise.all(running);
    },
    /** Raises the first failure, if there was one. */
    raise,
  };
}
