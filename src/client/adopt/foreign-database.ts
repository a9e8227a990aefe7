/** A SQLite database of another program, opened for reading. */
export interface ForeignDatabase {
  /** Returns the names of the ordinary columns of a table; empty if there is no such table. Views and generated columns do not count. */
  columns(table: string): readonly string[];
  /** Yields the rows of a query in bounded memory. */
  rows(sql: string, ...params: readonly (string | number)[]): Iterable<Readonly<Record<string, unknown>>>;
  close(): void;
}

/** Returns whether the table has all of these columns. */
export function hasColumns(database: ForeignDatabase, table: string, wanted: readonly string[]): boolean {
  const columns = new Set(database.columns(table));
  return wanted.every((name) => columns.has(name));
}
