/** The schema of one kind of database, stated once. Every change of `sql` takes the next version: nothing alters a schema in place, and a database of an older version is refused. */
export interface DatabaseSchema {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
  /** Tables that the first use creates. They belong to the version: its checksum covers them. */
  readonly parts?: Readonly<Record<string, SchemaPart>> | undefined;
}

/** Tables of a database that are created together, when one of them is first written. */
export interface SchemaPart {
  readonly sql: string;
  readonly tables: readonly string[];
  /** Parts whose tables this one refers to. They are created first. */
  readonly needs?: readonly string[] | undefined;
}

/** The schema that a database records about itself. */
export interface RecordedSchema {
  readonly version: number;
  readonly name: string;
  /** SHA-256 of the statements that created it. */
  readonly checksum: string;
}

/** `absent`: the first use creates it. `migrated`: the database is now in another engine. Only `absent` and `current` can be used. */
export type SchemaState = "absent" | "current" | "newer" | "older" | "altered" | "migrated";
