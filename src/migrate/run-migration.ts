import { asCairnError, CairnError } from "../model/errors.ts";
import type { MigrationRecord, TableDigest } from "../model/migration.ts";
import type {
  Counters,
  DatabaseShape,
  MigrationJournal,
  MigrationSource,
  MigrationTarget,
  RollbackTarget,
  Trace,
} from "../ports/migration.ts";
import { assertFitsSqlite, assertSound, differences, scan, type Watch } from "./scan.ts";

/** The two ends of one move, and what it is watched by. */
export interface Migration {
  readonly source: MigrationSource;
  readonly target: MigrationTarget;
  readonly shape: DatabaseShape;
  readonly journal: MigrationJournal;
  readonly watch: Watch;
  readonly trace: Trace;
}

/** Reads all of the source and asks the target, and changes nothing: what would stop the move stops it here. */
export async function planMigration(
  { source, target, shape, watch }: Migration,
  direction: MigrationRecord["direction"],
): Promise<TableDigest[]> {
  const unknown = await source.unknownTables();
  if (unknown.length > 0)
    throw new CairnError(
      "conflict",
      `${source.where} has tables that this version of Cairn does not know (${unknown.join(", ")}); they would be left behind. Upgrade Cairn, or move them elsewhere first.`,
    );
  await target.check();
  if ((await target.state()) === "occupied")
    throw new CairnError(
      "conflict",
      `${target.where} holds data already, and a move never mixes two databases. Set that one aside first, or move elsewhere. Nothing was changed.`,
    );
  return scan(source, shape, watch, (table, rows) => {
    if (direction === "down") assertFitsSqlite(table, rows);
    assertSound(table, rows);
  });
}

/**
 * Carries a move out from wherever its record says it stands: pause writes, export and import, verify, archive, switch. Until the
 * source is archived a failure undoes everything; after that a move only goes forward, however often it is killed.
 */
export async function runMigration(move: Migration, first: MigrationRecord): Promise<MigrationRecord> {
  const { source, target, journal, trace } = move;
  let record = first;
  const note = (change: Partial<MigrationRecord>) => {
    record = { ...record, ...change };
    journal.write(record);
    trace(`noted ${record.state}`);
  };
  try {
    if (record.state === "pausing") {
      note({});
      await source.pause(record.migrationId);
      note({ state: "paused" });
    }
    if (record.state === "paused")
      note({ tables: record.rollback ? await takeBack(move, record) : await copy(move, record), state: "copied" });
    if (record.state === "copied") {
      await verify(move, record.tables!);
      note({ state: "verified" });
    }
    note({ archive: await source.archive(record.migrationId) });
  } catch (error) {
    await undoMigration(move, record, error);
    throw error;
  }
  await target.open(record.migrationId);
  if (record.direction === "up") note({ state: "migrated", before: undefined });
  else {
    journal.remove();
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

/** Only as long as the target holds exactly what was moved there: else what was written since would be lost. */
async function takeBack({ source, target, shape, watch }: Migration, { before }: MigrationRecord): Promise<readonly TableDigest[]> {
  const moved = before?.tables ?? [];
  const changed = differences(moved, await scan(source, shape, watch));
  if (changed.length > 0)
    throw new CairnError(
      "conflict",
      `${source.where} was written to since the move (${changed.join("; ")}), so going back would lose that. Use it as it is, or copy everything back with: cairn migrate --to sqlite`,
      { details: { changed } },
    );
  await (target as RollbackTarget).restoreArchive(before!.migrationId, await source.counters());
  return moved;
}

async function verify({ source, target, shape, watch }: Migration, expected: readonly TableDigest[]): Promise<void> {
  const wrong = differences(expected, await scan(target, shape, watch));
  wrong.push(...behind(await source.counters(), await target.counters()), ...(await target.problems()));
  if (wrong.length > 0)
    throw new CairnError(
      "internal",
      `The copy in ${target.where} is not the same as ${source.where}: ${wrong.slice(0, 10).join("; ")}. Nothing was switched, and the source goes on as before. Run the migration again; if this comes back, tell us.`,
      { details: { wrong } },
    );
}

function behind(source: Counters, target: Counters): string[] {
  return Object.entries(source)
    .filter(([table, last]) => BigInt(target[table] ?? "0") < BigInt(last))
    .map(([table, last]) => `${table} would give out numbers again, since it counts from ${target[table] ?? "0"} instead of ${last}`);
}

/** Leaves everything as it was before the move. What cannot be undone now stays noted, and is undone by the next run. */
export async function undoMigration(
  { source, target, journal, trace }: Migration,
  record: MigrationRecord,
  cause?: unknown,
): Promise<void> {
  try {
    // From here on others may write again: whatever was copied must never be taken for complete.
    journal.write({ ...record, state: "pausing", tables: undefined, archive: undefined });
    trace("noted undoing");
    await source.resume(record.migrationId);
  } catch (error) {
    const { message } = asCairnError(error);
    throw new CairnError(
      "unavailable",
      `The move failed${cause === undefined ? "" : ` (${asCairnError(cause).message})`}, and letting writes through to ${source.where} again failed too: ${message} Run "cairn migrate --rollback" when it can be reached.`,
      { cause: cause ?? error },
    );
  }
  // A copy that nobody can use harms nobody: the next move replaces it.
  await target.discard(record.migrationId).catch(() => {});
  if (record.before) journal.write(record.before);
  else journal.remove();
  trace("undone");
}
