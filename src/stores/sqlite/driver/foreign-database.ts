import { loadEngine } from "./engine.ts";

/** Rows of another program's database, for readers that know its tables. */
export interface ForeignRows {
  columns(table: string): readonly string[];
  rows(sql: string, ...params: readonly (string | number)[]): Iterable<Readonly<Record<string, unknown>>>;
  close(): void;
}

/** Table column kinds of `PRAGMA table_xinfo` that are stored, not computed. */
const ORDINARY = 0;

/**
 * Opens a private copy of a database that another program wrote. Its content is untrusted: only ordinary tables and columns are offered,
 * because a view or a generated column runs expressions that the file chose.
 */
export async function openForeignDatabase(path: string): Promise<ForeignRows> {
  const { DatabaseSync } = await loadEngine();
  const database = new DatabaseSync(path, { allowExtension: false });
  try {
    database.exec("PRAGMA query_only = ON; PRAGMA cell_size_check = ON; PRAGMA cache_size = -8000; PRAGMA mmap_size = 0");
  } catch (error) {
    database.close();
    throw error;
  }
  // The bundled engine finalizes a statement that is collected as garbage, also while its rows are read.
  const statements = new Map<string, ReturnType<typeof database.prepare>>();
  const prepare = (sql: string) => {
    const statement = statements.get(sql) ?? database.prepare(sql);
    statements.set(sql, statement);
    return statement;
  };
  return {
    columns(table) {
      const kind = database.prepare("SELECT type FROM sqlite_master WHERE name = ?").get(table)?.type;
      if (kind !== "table") return [];
      const columns = database.prepare("SELECT name, hidden FROM pragma_table_xinfo(?)").all(table);
      return columns.flatMap(({ name, hidden }) => (Number(hidden) === ORDINARY ? [String(name)] : []));
    },
    *rows(sql, ...params) {
      for (const row of prepare(sql).iterate(...params)) yield row as Record<string, unknown>;
    },
    close: () => database.close(),
  };
}
