import { CairnError } from "../../model/errors.ts";
import { sha256Hex } from "../../model/ids.ts";
import { TOMBSTONE_VERSION } from "../../model/migration.ts";
import type { DatabaseSchema, RecordedSchema, SchemaState } from "../../model/schema.ts";

export function schemaChecksum({ sql, parts = {} }: DatabaseSchema): string {
  return sha256Hex([sql, ...Object.values(parts).map((part) => part.sql)].join("\n"));
}

/** Compares the schema of this version with the rows of `schema_migrations`. */
export function compareSchema(schema: DatabaseSchema, recorded: readonly RecordedSchema[]): SchemaState {
  if (recorded.length === 0) return "absent";
  if (recorded.some(({ version }) => version === TOMBSTONE_VERSION)) return "migrated";
  if (recorded.some(({ version }) => version > schema.version)) return "newer";
  const current = recorded.find(({ version }) => version === schema.version);
  if (!current) return "older";
  return current.checksum === schemaChecksum(schema) ? "current" : "altered";
}

/** Refuses a database whose schema is not the one of this version: reading or writing it could lose data. */
export function assertSchema(schema: DatabaseSchema, recorded: readonly RecordedSchema[], where: string): "absent" | "current" {
  const state = compareSchema(schema, recorded);
  if (state === "absent" || state === "current") return state;
  const refuse = (message: string, details: Readonly<Record<string, unknown>>) =>
    new CairnError("unavailable", message, { details: { where, ...details } });
  if (state === "migrated") throw refuse(`${where} was ${recorded.at(-1)!.name}. Set the storage accordingly.`, { migrating: true });
  const version = Math.max(...recorded.map((row) => row.version));
  if (state === "altered")
    throw refuse(
      `The schema of ${where} was altered: version ${schema.version} has another checksum here. Restore a backup, or use the version of Cairn that wrote it.`,
      { version },
    );
  throw refuse(
    state === "newer"
      ? `${where} was written by a newer version of Cairn (schema version ${version}; this one uses ${schema.version}). Upgrade Cairn, or restore a backup made by this version.`
      : `${where} was written by an older version of Cairn (schema version ${version}; this one uses ${schema.version}). Use the version that wrote it; the changelog says how to convert the data.`,
    { version },
  );
}
