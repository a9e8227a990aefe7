import type { StoredApiKey } from "../../model/api-key.ts";
import type { KeyStore } from "../../ports/key-store.ts";
import { addKey, type KeyChange, markKeyUsed, removeKey, replaceKey } from "../rows/key-changes.ts";

/** API keys that live as long as the process. */
export function memoryKeyStore(): KeyStore {
  let keys: readonly StoredApiKey[] = [];
  const change = async (update: KeyChange): Promise<boolean> => {
    const before = keys;
    keys = update(before);
    return keys !== before;
  };
  return {
    all: async () => keys,
    add: async (key) => void (await change(addKey(key))),
    replace: (id, expiresAt, successor) => change(replaceKey(id, expiresAt, successor)),
    markUsed: async (id, at) => void (await change(markKeyUsed(id, at))),
    remove: (id) => change(removeKey(id)),
  };
}
