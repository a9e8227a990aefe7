export interface Period {
  readonly firstMs: number;
  readonly everyMs: number;
}

/** Calls `work` after a first delay and then at intervals, without keeping the process alive. Returns the function that ends it. */
export function runPeriodically({ firstMs, everyMs }: Period, work: () => void): () => void {
  const next = () => {
    work();
    timer = setTimeout(next, everyMs).unref();
  };
  let timer = setTimeout(next, firstMs).unref();
  return () => clearTimeout(timer);
}
