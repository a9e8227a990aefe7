/**
 * Lists are ordered by a time that is stored beside each record: its creation time, or the time of insertion where the creation time
 * lies in the future. A clock that was ahead writes such times unnoticed; the first save after it was set right proves that those
 * records are older than the save, so their places are moved to just before it, in the same order.
 */

/** Milliseconds by which a stored time may be ahead of a save. Machines that share a database differ by seconds, and a save takes up to 30 s. */
export const CLOCK_SKEW_MS = 60_000;

/** The place of a record with this time among records that are stored now. */
export function orderTime(time: string, now: string): string {
  return time > now ? now : time;
}

/** Places beyond this time were written by a clock that was ahead. */
export function latestPlace(savedAt: string): string {
  return new Date(Date.parse(savedAt) + CLOCK_SKEW_MS).toISOString();
}

/** The new place of the record that was the `index`-th from the newest among the records that are ahead. */
export function placeBefore(savedAt: string, index: number): string {
  return new Date(Date.parse(savedAt) - index - 1).toISOString();
}

export interface Placed {
  readonly id: string;
  readonly at: string;
}

/** Sorts newest first, ties by id. */
export function newestFirst(a: Placed, b: Placed): number {
  if (a.at !== b.at) return a.at < b.at ? 1 : -1;
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}
