/** A record with its key in the database. */
export interface Keyed {
  readonly key: number;
  readonly id: string;
}

/** The keys of ids that a search has just met: a key leads to its row, an id only by way of an index that is spread over the file. */
export interface KnownKeys {
  note(records: readonly Keyed[]): void;
  /** Null where it is not known. A key is never used again, but the record that has it may have another id by now. */
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
