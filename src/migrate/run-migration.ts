import { asCairnError, CairnError } from "../model/errors.ts";
import type { MigrationRecord, TableDigest } from "../model/migration.ts";
import type {
  Counters,
  DatabaseShape,
  MigrationRecordStore,
  MigrationSource,
  MigrationTarget,
  RollbackTarget,
  Trace,
} from "../ports/migration.ts";
import { assertFitsSqlite, assertSound, differences, scan, type Watch } from "./scan.ts";

/** One migration: its two databases, its record and its observers. */
export interface Migration {
  readonly source: MigrationSource;
  readonly target: MigrationTarget;
  readonly shape: DatabaseShape;
  readonly records: MigrationRecordStore;
  readonly watch: Watch;
  readonly trace: Trace;
}

/** Checks the source and the target without changes and returns the digests of the source. */
export async function planMigration(
  { source, target, shape, watch }: Migration,
  direction: MigrationRecord["direction"],
): Promise<TableDigest[]> {
  const unknown = await source.unknownTables();
  if (unknown.length > 0)
    throw new CairnError(
      "conflict",
      `${source.where} has tables that this version of Cairn does not know (${unknown.join(", ")}), so it cannot migrate them. Upgrade Cairn, or move them to another database first.`,
    );
  await target.check();
  if ((await target.state()) === "occupied")
    throw new CairnError(
      "conflict",
      `${target.where} already contains data, and a migration never merges two databases. Choose another target, or rename the existing one. Nothing was changed.`,
    );
  return scan(source, shape, watch, (table, rows) => {
    if (direction === "down") assertFitsSqlite(table, rows);
    assertSound(table, rows);
  });
}

/**
 * Runs a migration from the state in its record: fence the source, copy, verify, archive the source, open the target. Until the
 * source is archived, a failure undoes everything; afterwards the migration can only be completed, however often it is killed.
 */
export async function runMigration(migration: Migration, first: MigrationRecord): Promise<MigrationRecord> {
  const { source, target, records, trace } = migration;
  let record = first;
  const saveRecord = (change: Partial<MigrationRecord>) => {
    record = { ...record, ...change };
    records.write(record);
    trace(`recorded ${record.state}`);
  };
  try {
    if (record.state === "fencing") {
      saveRecord({});
      await source.fence(record.migrationId);
      saveRecord({ state: "fenced" });
    }
    if (record.state === "fenced")
      saveRecord({ tables: record.rollback ? await restoreArchive(migration, record) : await copy(migration, record), state: "copied" });
    if (record.state === "copied") {
      await verify(migration, record.tables!);
      saveRecord({ state: "verified" });
    }
    saveRecord({ archive: await source.archive(record.migrationId) });
  } catch (error) {
    await undoMigration(migration, record, error);
    throw error;
  }
  await target.open(record.migrationId);
  if (record.direction === "up") saveRecord({ state: "migrated", before: undefined });
  else {
    records.remove();
    trace("record removed");
    record = { ...record, state: "migrated" };
  }
  return record;
}

async function copy({ source, target, shape, watch }: Migration, { migrationId }: MigrationRecord): Promise<TableDigest[]> {
  let tables: TableDigest[] = [];
  await target.fill(migrationId, async (put) => {
    tables = await scan(source, shape, watch, put);
    return source.counters();
  });
  return tables;
}

/** Restores the archived file. Refused if PostgreSQL was written to since, because these writes would be lost. */
async function restoreArchive({ source, target, shape, watch }: Migration, { before }: MigrationRecord): Promise<readonly TableDigest[]> {
  const migrated = before?.tables ?? [];
  const changed = differences(migrated, await scan(source, shape, watch));
  if (changed.length > 0)
    throw new CairnError(
      "conflict",
      `${source.where} was written to since the migration (${changed.join("; ")}), so a rollback would lose data. Keep it, or migrate everything back with: cairn migrate --to sqlite`,
      { details: { changed } },
    );
  await (target as RollbackTarget).restoreArchive(before!.migrationId, await source.counters());
  return migrated;
}

async function verify({ source, target, shape, watch }: Migration, expected: readonly TableDigest[]): Promise<void> {
  const wrong = differences(expected, await scan(target, shape, watch));
  wrong.push(...findLaggingCounters(await source.counters(), await target.counters()), ...(await target.problems()));
  if (wrong.length > 0)
    throw new CairnError(
      "internal",
      `The copy in ${target.where} differs from ${source.where}: ${wrong.slice(0, 10).join("; ")}. The source stays in use, unchanged. Run the migration again; if it fails again, report a bug.`,
      { details: { wrong } },
    );
}

function findLaggingCounters(source: Counters, target: Counters): string[] {
  return Object.entries(source)
    .filter(([table, last]) => BigInt(target[table] ?? "0") < BigInt(last))
    .map(([table, last]) => `${table} would reuse numbers: its counter is ${target[table] ?? "0"} instead of ${last}`);
}

/** Restores the state before the migration. If that fails, the record stays and the next run undoes it. */
export async function undoMigration(
  { source, target, records, trace }: Migration,
  record: MigrationRecord,
  cause?: unknown,
): Promise<void> {
  try {
    // After `unfence` other processes write again, so the copy must never count as complete: the record returns to `fencing`, the state
    // before the copy. A process that is killed here leaves a record from which the migration can restart, or be undone again.
    records.write({ ...record, state: "fencing", tables: undefined, archive: undefined });
    trace("recorded undoing");
    await source.unfence(record.migrationId);
  } catch (error) {
    const { message } = asCairnError(error);
    throw new CairnError(
      "unavailable",
      `The migration failed${cause === undefined ? "" : ` (${asCairnError(cause).message})`}, and removing the fence of ${source.where} failed too: ${message} Run "cairn migrate --rollback" when it is reachable.`,
      { cause: cause ?? error },
    );
  }
  // A fenced copy does no harm: the next migration replaces it.
  await target.discard(record.migrationId).catch(() => {});
  if (record.before) records.write(record.before);
  else records.remove();
  trace("undone");
}
