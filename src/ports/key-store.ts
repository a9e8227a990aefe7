import type { StoredApiKey } from "../model/api-key.ts";

/** Stores API keys. Every method is atomic, also across processes, and a resolved promise means durable. */
export interface KeyStore {
  /**
   * Returns all keys in the order of their creation. A change by another process shows within a second; a new key at once, if its id is
   * `wanted`. Raises `unavailable` if they cannot be read; every key is then refused.
   */
  all(wanted?: string): Promise<readonly StoredApiKey[]>;
  /** Adds a key unless one with its id exists. */
  add(key: StoredApiKey): Promise<void>;
  /** Adds the successor of a key, and makes the key itself expire at this time. Returns whether the key existed. */
  replace(id: string, expiresAt: string, successor: StoredApiKey): Promise<boolean>;
  /** Records the last use of a key; an earlier time or an unknown key changes nothing. */
  markUsed(id: string, at: string): Promise<void>;
  /** Deletes a key and returns whether it existed. */
  remove(id: string): Promise<boolean>;
  /** Adds the calls that keys made here, and returns what other processes added for the same keys since. Only where processes share the store. */
  readonly exchangeUsage?: ((taken: ReadonlyMap<string, number>) => Promise<ReadonlyMap<string, number>>) | undefined;
}
