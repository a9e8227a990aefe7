import type { StoredApiKey } from "../model/api-key.ts";

/** Stores API keys. Every method is atomic, also across processes, and a resolved promise means durable. */
export interface KeyStore {
  /** Returns all keys in the order of their creation. Raises `unavailable` if they cannot be read; every key is then refused. */
  all(): Promise<readonly StoredApiKey[]>;
  add(key: StoredApiKey): Promise<void>;
  /** Deletes a key and returns whether it existed. */
  remove(id: string): Promise<boolean>;
}
