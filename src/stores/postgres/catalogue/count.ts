import type { PostgresDatabase } from "../driver/driver.ts";
import { type SchemaAnswer, selectFromSchemas, tableIn } from "./schemas.ts";

export interface SchemaCounts {
  readonly schema: string;
  /** Null: the schema belongs to no project. */
  readonly owner: string | null;
  readonly checkpoints: number;
  readonly knowledge: number;
  readonly code_files: number;
  readonly last_activity_at: string | null;
  /** The counts include every write that was committed before this time. */
  readonly counted_at: string;
}

/** Counts the records of these schemas. A schema that is gone is left out. */
export function countSchemas(
  database: PostgresDatabase,
  schemas: readonly string[],
  signal?: AbortSignal,
): Promise<SchemaAnswer<SchemaCounts>> {
  return selectFromSchemas<SchemaCounts>(database, {
    schemas,
    tables: ["project_info", "checkpoints", "knowledge", "indexed_files"],
    signal,
    select(schema, has) {
      if (!has("project_info")) return undefined;
      const from = (value: string, table: string, otherwise: string) =>
        has(table) ? `(SELECT ${value} FROM ${tableIn(schema, table)})` : otherwise;
      const lastOf = (table: string) => from("max(updated_at)", table, "NULL::timestamptz");
      return `SELECT '${schema}' AS schema, ${from("max(project_id)", "project_info", "")} AS owner,
        ${from("count(*)", "checkpoints", "0::bigint")} AS checkpoints, ${from("count(*)", "knowledge", "0::bigint")} AS knowledge,
        ${from("count(*)", "indexed_files", "0::bigint")} AS code_files,
        greatest(${lastOf("checkpoints")}, ${lastOf("knowledge")}) AS last_activity_at, now() AS counted_at`;
    },
  });
}
