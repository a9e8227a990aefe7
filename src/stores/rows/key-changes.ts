import type { StoredApiKey } from "../../model/api-key.ts";

/** A change of the list of API keys. It returns the same list if there is nothing to change. */
export type KeyChange = (keys: readonly StoredApiKey[]) => readonly StoredApiKey[];

export const addKey =
  (key: StoredApiKey): KeyChange =>
  (keys) =>
    keys.some(({ id }) => id === key.id) ? keys : [...keys, key];

export const replaceKey =
  (id: string, expiresAt: string, successor: StoredApiKey): KeyChange =>
  (keys) =>
    keys.some((key) => key.id === id) ? [...keys.map((key) => (key.id === id ? { ...key, expiresAt } : key)), successor] : keys;

export const markKeyUsed =
  (id: string, at: string): KeyChange =>
  (keys) =>
    keys.some((key) => key.id === id && (key.lastUsedAt ?? "") < at)
      ? keys.map((key) => (key.id === id ? { ...key, lastUsedAt: at } : key))
      : keys;

export const removeKey =
  (id: string): KeyChange =>
  (keys) =>
    keys.some((key) => key.id === id) ? keys.filter((key) => key.id !== id) : keys;
