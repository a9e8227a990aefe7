import { setImmediate as nextTurn } from "node:timers/promises";

/** Milliseconds of work between two turns of the event loop. */
const SLICE_MS = 10;

/** Maps a long list one by one, in slices of a few milliseconds, so that other calls are answered in between. */
export async function mapInSlices<Item, Result>(
  items: readonly Item[],
  map: (item: Item, index: number) => Result | Promise<Result>,
  signal?: AbortSignal,
): Promise<Result[]> {
  const results: Result[] = [];
  let endsAt = performance.now() + SLICE_MS;
  for (const [index, item] of items.entries()) {
    results.push(await map(item, index));
    if (performance.now() < endsAt) continue;
    await nextTurn();
    signal?.throwIfAborted();
    endsAt = performance.now() + SLICE_MS;
  }
  return results;
}
