import type { StoredApiKey } from "../model/api-key.ts";

/** Where API keys are kept. Every verb is atomic, also between processes, and done means durable. */
export interface KeyStore {
  /** In the order they were made. Raises `unavailable` when the keys cannot be read: then nobody is let in. */
  all(): Promise<readonly StoredApiKey[]>;
  add(key: StoredApiKey): Promise<void>;
  /** Whether there was such a key. */
  remove(id: string): Promise<boolean>;
}
