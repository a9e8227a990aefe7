import type { StoredApiKey } from "../../model/api-key.ts";
import type { KeyStore } from "../../ports/key-store.ts";

/** API keys that live as long as the process. */
export function memoryKeyStore(): KeyStore {
  let keys: readonly StoredApiKey[] = [];
  return {
    async all() {
      return keys;
    },
    async add(key) {
      keys = [...keys, key];
    },
    async remove(id) {
      const before = keys.length;
      keys = keys.filter((key) => key.id !== id);
      return keys.length < before;
    },
  };
}
