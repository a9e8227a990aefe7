import type pg from "pg";
import type { DatabaseSchema } from "../../src/model/schema.ts";
import type { DatabaseShape } from "../../src/ports/migration.ts";
import { loadEngine } from "../../src/stores/sqlite/driver/engine.ts";

export interface CatalogColumn {
  /** The type as the catalog or the migration names it. */
  readonly type: string;
  readonly nullable: boolean;
}
/** Tables by name, columns by name. */
export type Catalog = ReadonlyMap<string, ReadonlyMap<string, CatalogColumn>>;

/** Reads the tables that these schemas create, from the catalog of an in-memory SQLite database each. */
export async function sqliteCatalog(...schemas: readonly DatabaseSchema[]): Promise<Catalog> {
  const { DatabaseSync } = await loadEngine();
  const found = new Map<string, ReadonlyMap<string, CatalogColumn>>();
  for (const { sql } of schemas) {
    const db = new DatabaseSync(":memory:");
    db.exec(sql);
    const tables = db.prepare("SELECT name FROM pragma_table_list WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").all() as {
      name: string;
    }[];
    for (const { name } of tables) {
      const columns = db
        .prepare(`SELECT name, type, "notnull" AS required, pk FROM pragma_table_info(?)`)
        .all(name) as unknown as SqliteColumn[];
      found.set(name, new Map(columns.map((c) => [c.name, { type: c.type, nullable: c.required === 0 && c.pk === 0 }])));
    }
    db.close();
  }
  return found;
}

interface SqliteColumn {
  readonly name: string;
  readonly type: string;
  readonly required: number;
  readonly pk: number;
}

/** Reads the tables of a PostgreSQL schema from `information_schema`. */
export async function postgresCatalog(client: pg.Client, schema: string): Promise<Catalog> {
  const { rows } = await client.query<{ table: string; name: string; type: string; nullable: boolean }>(
    `SELECT c.table_name AS "table", c.column_name AS name, c.udt_name AS type, c.is_nullable = 'YES' AS nullable
       FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
      WHERE c.table_schema = $1 AND t.table_type = 'BASE TABLE' AND c.table_name <> 'schema_migrations' ORDER BY c.table_name, c.ordinal_position`,
    [schema],
  );
  const found = new Map<string, Map<string, CatalogColumn>>();
  for (const { table, name, type, nullable } of rows) {
    const columns = found.get(table) ?? new Map<string, CatalogColumn>();
    found.set(table, columns.set(name, { type, nullable }));
  }
  return found;
}

/** Reads the tables that the migration copies. */
export function migrationCatalog({ tables }: DatabaseShape): Catalog {
  return new Map(
    tables.map(({ name, columns }) => [name, new Map(columns.map((c) => [c.name, { type: c.type, nullable: c.nullable === true }]))]),
  );
}
