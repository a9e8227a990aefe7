import type { MigrationRecord } from "../model/migration.ts";

/** What a column holds, named after PostgreSQL's types. SQLite holds each in its own way. */
export type ColumnType = "text" | "int4" | "int8" | "bool" | "time" | "float4" | "float8" | "bytes" | "vector" | "texts" | "names";

/**
 * A value without regard to the database it came from: whole numbers as bigint, times as microseconds since 1970, text as its
 * UTF-8 bytes, vectors as little-endian float32 bytes, lists as strings, and `names` (a map of strings) as a flat list in order.
 */
export type Value = null | bigint | boolean | number | Uint8Array | readonly string[];
export type Row = readonly Value[];

/** `project` is also the database that all projects share; `threads` are those of LangGraph. */
export type DatabaseKind = "project" | "runs" | "threads" | "system";

export interface Column {
  readonly name: string;
  readonly type: ColumnType;
  readonly nullable?: boolean;
}

/** A table as both databases have it, whatever their schemas look like. */
export interface TableShape {
  readonly kind: DatabaseKind;
  readonly name: string;
  readonly columns: readonly Column[];
  /** The columns that tell a person which row is meant. */
  readonly key: readonly string[];
  /** A column whose numbers are given out by the database and never twice. */
  readonly counter?: string;
  /** Why a row with a checksum cannot be trusted; absent where rows have none. */
  readonly damage?: (row: NamedValues) => string | undefined;
  /** The text under whose words the row is found. Full-text rows are not moved but made again. */
  readonly fullText?: (row: NamedValues) => string;
}

/** A row by the names of its columns. */
export interface NamedValues {
  value(column: string): Value;
  /** Empty where there is none. */
  text(column: string): string;
}

/** Everything that is true in one kind of database. What is not listed is derived from it. */
export interface DatabaseShape {
  readonly kind: DatabaseKind;
  readonly tables: readonly TableShape[];
  /** Tables that are made again on the other side, or belong to it alone. */
  readonly derived: readonly string[];
}

/** The last number that each counter gave out, by table. */
export type Counters = Readonly<Record<string, string>>;

/** Told of each write of a move, as it has just been made. */
export type Trace = (point: string) => void;

interface MigrationEndpoint {
  /** For messages; never a password. */
  readonly where: string;
  /** Nobody else moves this database until `close`, or the end of this process. Raises `conflict` while somebody does. */
  lock(): Promise<void>;
  /** All rows of a table, a bounded number at a time. Raises `conflict`, naming the row, at a value that the other side cannot hold. */
  rows(table: TableShape): AsyncIterable<readonly Row[]>;
  counters(): Promise<Counters>;
  close(): Promise<void>;
}

/** The database that is moved. Everything but reading may be repeated without harm. */
export interface MigrationSource extends MigrationEndpoint {
  exists(): Promise<boolean>;
  /** Tables that this version does not know; they would be left behind. */
  unknownTables(): Promise<readonly string[]>;
  /** From now on the database itself refuses every write; all that was acknowledged is in it. */
  pause(migrationId: string): Promise<void>;
  /** Undoes `pause`, and `archive` too. */
  resume(migrationId: string): Promise<void>;
  /** Takes it out of use, whole, and gives its new place. Those who have it open find out at their next call. */
  archive(migrationId: string): Promise<string>;
}

/** Where it goes. */
export interface MigrationTarget extends MigrationEndpoint {
  /** `ours`: a copy that this move made, or that an earlier one left behind unfinished. */
  state(): Promise<"absent" | "ours" | "occupied">;
  /** Raises, saying what to do, if it could not be filled. */
  check(): Promise<void>;
  /** Fills it with what `feed` brings, all or nothing, in place of what an unfinished move left. Nobody else can write to it yet. */
  fill(migrationId: string, feed: (put: (table: TableShape, rows: readonly Row[]) => Promise<void>) => Promise<Counters>): Promise<void>;
  /** What is wrong with the data that was made again: full text, codes, indexes. */
  problems(): Promise<readonly string[]>;
  /** Lets everybody in. */
  open(migrationId: string): Promise<void>;
  /** Removes what `fill` made, as long as nobody was let in. */
  discard(migrationId: string): Promise<void>;
}

/** Remembers how far the move has come, durably and beside the SQLite file. */
export interface MigrationJournal {
  read(): MigrationRecord | undefined;
  /** Writes the first record. Raises `conflict` if there is one. */
  begin(record: MigrationRecord): void;
  write(record: MigrationRecord): void;
  remove(): void;
}

/** The target of a way back can take the file that was archived on the way up. */
export interface RollbackTarget extends MigrationTarget {
  /** In place of `fill`: the archived file as it was, with counters that are at least these. */
  restoreArchive(archivedBy: string, counters: Counters): Promise<void>;
}

export function namedValues(table: TableShape): (row: Row) => NamedValues {
  const at = new Map(table.columns.map(({ name }, index) => [name, index]));
  return (row) => {
    const value = (column: string) => row[at.get(column) ?? -1] ?? null;
    return { value, text: (column) => Buffer.from((value(column) as Uint8Array | null) ?? []).toString("utf8") };
  };
}
