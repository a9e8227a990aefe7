/** A record with its key in the database. */
export interface Keyed {
  readonly key: number;
  readonly id: string;
}

/** Caches the keys of ids that a search has just found: a lookup by key is cheaper than one through the index of ids. */
export interface KnownKeys {
  note(records: readonly Keyed[]): void;
  /** Returns null for an unknown id. A key is never reused, but its record may have another id by now. */
  of(id: string): number | null;
}

const KEYS_MAX = 2_000;

export function knownKeys(): KnownKeys {
  const keys = new Map<string, number>();
  return {
    note(records) {
      if (keys.size + records.length > KEYS_MAX) keys.clear();
      for (const { key, id } of records) keys.set(id, key);
    },
    of: (id) => keys.get(id) ?? null,
  };
}
