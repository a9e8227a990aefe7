import { CairnError } from "../../../model/errors.ts";
import { forEachParallel } from "../../../scheduling/for-each-parallel.ts";
import { type PgValue, type PostgresDatabase, type PostgresTx, quoteName } from "../driver/driver.ts";
import { isConnectionLoss } from "../driver/errors.ts";

/** Schemas that one statement reads. Each costs the server about fifteen locks, of which it has some thousands. */
const AT_ONCE = 40;
/** Statements that run at the same time. Others use the connections too. */
const CONCURRENCY = 3;
/** Milliseconds to wait for a locked schema, such as the target of a migration. The others of its statement wait with it. */
const LOCK_WAIT_MS = 500;

/** The part of a statement for one schema. `has` reports which of the named tables the schema has; `undefined` leaves the schema out. */
export type SelectFrom = (schema: string, has: (table: string) => boolean) => string | undefined;

export interface SchemaQuery {
  readonly schemas: readonly string[];
  /** Tables that `select` asks for. */
  readonly tables: readonly string[];
  readonly select: SelectFrom;
  readonly params?: readonly PgValue[];
  /** Names parameters that the part of a schema may not use: PostgreSQL must know the type of each. */
  readonly optionalParams?: readonly string[];
  readonly signal?: AbortSignal | undefined;
}

export interface SchemaAnswer<Row> {
  readonly rows: readonly Row[];
  /** Schemas that were not read for lack of time. */
  readonly late: readonly string[];
  /** Schemas that could not be read. */
  readonly failed: readonly { readonly schema: string; readonly error: unknown }[];
}

/**
 * Reads many schemas with few statements. If one of them cannot be read, the schemas of its statement are read one by one. A lost
 * connection concerns them all, and is raised.
 */
export async function selectFromSchemas<Row>(database: PostgresDatabase, query: SchemaQuery): Promise<SchemaAnswer<Row>> {
  const { schemas, tables, select, params = [], optionalParams = [], signal } = query;
  const given = optionalParams.length > 0 ? `WITH given AS (SELECT ${optionalParams.join(", ")}) ` : "";
  const rows: Row[] = [];
  const failed: { schema: string; error: unknown }[] = [];
  const ask = (some: readonly string[]) =>
    database.read("pg_catalog", async (tx) => {
      await tx.exec(`SET LOCAL lock_timeout = ${LOCK_WAIT_MS}`);
      const existing = await tablesIn(tx, some, tables);
      const parts = some.flatMap((schema) => select(schema, (table) => existing.has(`${schema}.${table}`)) ?? []);
      return parts.length === 0 ? [] : tx.exec<Row>(given + parts.join(" UNION ALL "), ...params);
    });
  const late = await forEachParallel(chunksOf(schemas, AT_ONCE), { concurrency: CONCURRENCY, signal }, async function visit(some) {
    try {
      rows.push(...(await ask(some)));
    } catch (error) {
      if (isConnectionLoss(error instanceof CairnError ? error.cause : error)) throw error;
      if (some.length === 1) failed.push({ schema: some[0]!, error });
      else for (const schema of some) await visit([schema]);
    }
  });
  return { rows, late: late.flat(), failed };
}

/** Returns those of these tables that the schemas have, as `schema.table`. */
async function tablesIn(tx: PostgresTx, schemas: readonly string[], tables: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await tx.all<{ name: string }>(
    `SELECT n.nspname || '.' || c.relname AS name FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = ANY ($2::name[])
      WHERE n.nspname = ANY ($1::name[]) AND c.relkind = 'r'`,
    schemas,
    tables,
  );
  return new Set(rows.map(({ name }) => name));
}

/** Returns the name of a table with its schema, for a statement that reads several schemas. */
export function tableIn(schema: string, table: string): string {
  return `${quoteName(schema)}.${quoteName(table)}`;
}

function chunksOf<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) => items.slice(index * size, (index + 1) * size));
}
