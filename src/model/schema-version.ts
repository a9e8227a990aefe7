import { CairnError } from "./errors.ts";
import { sha256Hex } from "./ids.ts";
import { TOMBSTONE_VERSION } from "./migration.ts";

/** One numbered step of a schema. Once released it never changes: its checksum is recorded with the data. */
export interface Migration {
  readonly id: number;
  readonly name: string;
  readonly sql: string;
}

export interface AppliedMigration {
  readonly id: number;
  readonly name: string;
  readonly checksum: string;
}

export function migrationChecksum(migration: Migration): string {
  return sha256Hex(migration.sql);
}

/** The steps still to be taken. A schema that is newer than this program, or was altered, is refused: guessing could lose data. */
export function pendingMigrations(known: readonly Migration[], applied: readonly AppliedMigration[], where: string): readonly Migration[] {
  const byId = new Map(known.map((migration) => [migration.id, migration]));
  for (const row of applied) {
    if (row.id === TOMBSTONE_VERSION)
      throw new CairnError("unavailable", `${where} was ${row.name}. Set the storage accordingly.`, {
        details: { where, migrating: true },
      });
    const migration = byId.get(row.id);
    if (!migration)
      throw new CairnError(
        "unavailable",
        `${where} was written by a newer version of Cairn (schema step ${row.id} "${row.name}" is unknown here). Upgrade Cairn, or open a copy made by this version.`,
        {
          details: { where, step: row.id },
        },
      );
    if (migrationChecksum(migration) !== row.checksum)
      throw new CairnError(
        "unavailable",
        `The schema of ${where} was altered: step ${row.id} "${row.name}" is not the one this version knows. Restore a backup, or use the version that wrote it.`,
        {
          details: { where, step: row.id },
        },
      );
  }
  const done = new Set(applied.map((row) => row.id));
  return known.filter((migration) => !done.has(migration.id));
}
