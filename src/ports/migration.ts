import type { MigrationRecord } from "../model/migration.ts";

/** Types of columns, named after those of PostgreSQL. SQLite encodes each in its own way. */
export type ColumnType = "text" | "int4" | "int8" | "bool" | "time" | "float4" | "float8" | "bytes" | "vector" | "texts" | "names";

/**
 * A value in a form that both engines share: integers as bigint, times as microseconds since 1970, text as UTF-8 bytes, vectors as
 * little-endian float32 bytes, lists as strings, and `names` (a map of strings) as a flat list sorted by key.
 */
export type Value = null | bigint | boolean | number | Uint8Array | readonly string[];
export type Row = readonly Value[];

/** `project` includes the shared database; `threads` are those of LangGraph. */
export type DatabaseKind = "project" | "runs" | "threads" | "system";

export interface Column {
  readonly name: string;
  readonly type: ColumnType;
  readonly nullable?: boolean;
}

/** A table in the form that both engines share. */
export interface TableShape {
  readonly kind: DatabaseKind;
  readonly name: string;
  readonly columns: readonly Column[];
  /** The columns that identify a row in messages. */
  readonly key: readonly string[];
  /** A column whose values the database generates and never reuses. */
  readonly counter?: string;
  /** Returns why a row does not match its checksum; absent where rows have none. */
  readonly damage?: (row: NamedValues) => string | undefined;
  /** Returns the text for the full-text index, which is rebuilt instead of copied. */
  readonly fullText?: (row: NamedValues) => string;
}

/** Reads a row by column names. */
export interface NamedValues {
  value(column: string): Value;
  /** Returns an empty string for NULL. */
  text(column: string): string;
}

/** The tables of one kind of database. */
export interface DatabaseShape {
  readonly kind: DatabaseKind;
  readonly tables: readonly TableShape[];
  /** Tables that are rebuilt on the other side, or exist on one side only. */
  readonly derived: readonly string[];
}

/** The last value that each counter generated, by table. */
export type Counters = Readonly<Record<string, string>>;

/** Called after each write of a migration, for crash tests. */
export type Trace = (point: string) => void;

interface MigrationEndpoint {
  /** For messages; never a password. */
  readonly where: string;
  /** Excludes other migrations of this database until `close` or the end of the process. Raises `conflict` while another one runs. */
  lock(): Promise<void>;
  /** Returns the rows of a table in batches. Raises `conflict`, with the row, for a value that the other engine cannot store. */
  rows(table: TableShape): AsyncIterable<readonly Row[]>;
  counters(): Promise<Counters>;
  close(): Promise<void>;
}

/** The database to migrate. Every change is idempotent. */
export interface MigrationSource extends MigrationEndpoint {
  exists(): Promise<boolean>;
  /** Returns whether nothing is at its location. A database that was migrated away leaves a tombstone there on PostgreSQL. */
  isRemoved(): Promise<boolean>;
  /** Returns tables that this version does not know, and so cannot copy. */
  unknownTables(): Promise<readonly string[]>;
  /** Fences the database: it refuses every further write, and holds every acknowledged one. */
  fence(migrationId: string): Promise<void>;
  /** Undoes `fence` and `archive`. */
  unfence(migrationId: string): Promise<void>;
  /** Archives the database and returns its new location. Processes that have it open notice at their next call. */
  archive(migrationId: string): Promise<string>;
}

/** The database to fill. */
export interface MigrationTarget extends MigrationEndpoint {
  /** `ours`: an unfinished copy of this or an earlier migration from the same source. */
  state(): Promise<"absent" | "ours" | "occupied">;
  /** Raises an error with advice if the target cannot be filled. */
  check(): Promise<void>;
  /**
   * Stores what `feed` puts, atomically, and replaces an unfinished copy. The target stays unavailable
   * until `open`: fenced on PostgreSQL, under another name on SQLite.
   */
  fill(migrationId: string, feed: (put: (table: TableShape, rows: readonly Row[]) => Promise<void>) => Promise<Counters>): Promise<void>;
  /** Returns problems of rebuilt data: full-text index, vector codes, indexes. */
  problems(): Promise<readonly string[]>;
  /** Makes the target available. */
  open(migrationId: string): Promise<void>;
  /** Removes a copy that was not opened. */
  discard(migrationId: string): Promise<void>;
}

/** Stores the progress of a migration durably, next to the SQLite file. */
export interface MigrationRecordStore {
  read(): MigrationRecord | undefined;
  /** Writes the first record. Raises `conflict` if one exists. */
  begin(record: MigrationRecord): void;
  write(record: MigrationRecord): void;
  remove(): void;
}

/** A target that can also restore the file that a migration to PostgreSQL archived. */
export interface RollbackTarget extends MigrationTarget {
  /** Replaces `fill`: restores the archived file and raises its counters to these. */
  restoreArchive(archivedBy: string, counters: Counters): Promise<void>;
}

/** Returns a function that reads rows of this table by column names. */
export function namedValues(table: TableShape): (row: Row) => NamedValues {
  const at = new Map(table.columns.map(({ name }, index) => [name, index]));
  return (row) => {
    const value = (column: string) => row[at.get(column) ?? -1] ?? null;
    return { value, text: (column) => Buffer.from((value(column) as Uint8Array | null) ?? []).toString("utf8") };
  };
}
