import { framedHash } from "./ids.ts";

/** Identifies a call that its caller may repeat: of all calls with one key within a day, only the first has an effect. */
export interface IdempotencyKey {
  /** A hash of the operation and the caller's key, so that no text of the caller is stored. */
  readonly key: string;
  /** The time of the call. */
  readonly at: string;
}

const VALID_MS = 24 * 60 * 60 * 1_000;

export function idempotencyKey(operation: string, given: string, at: string): IdempotencyKey {
  return { key: framedHash(operation, given), at };
}

/** Returns the time before which a key was used too long ago to count at `at`. */
export function keysExpiredBefore(at: string): string {
  return new Date(Date.parse(at) - VALID_MS).toISOString();
}
