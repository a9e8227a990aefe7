import type { DatabaseName } from "../model/backup.ts";
import { CairnError } from "../model/errors.ts";
import type { MigrationRecord, TableDigest } from "../model/migration.ts";
import type { DatabaseShape, MigrationRecordStore, MigrationSource, MigrationTarget, Trace } from "../ports/migration.ts";
import { type Migration, planMigration, runMigration, undoMigration } from "./run-migration.ts";

/** A database of Cairn, or a file of LangGraph threads at any path. */
export type Which = DatabaseName | { readonly kind: "threads"; readonly path: string };

/** One database that can be migrated, with what its two ends are made of. */
export interface MigratableDatabase {
  /** For messages. */
  readonly name: string;
  readonly projectId?: string | undefined;
  readonly shape: DatabaseShape;
  readonly records: MigrationRecordStore;
  newMigrationId(): string;
  /** The path of its SQLite file, which may not exist. */
  readonly path: string;
  /** Removes the fence of a file without a migration record. Returns whether there was one. */
  dropStrayFence(): Promise<boolean>;
  up(url: string, trace: Trace): { readonly source: MigrationSource; readonly target: MigrationTarget };
  down(url: string, trace: Trace): { readonly source: MigrationSource; readonly target: MigrationTarget };
}

export interface MigrateInput {
  /** A postgres:// URL, or `sqlite` to migrate back. Not needed to finish an unfinished migration. */
  readonly to?: string | undefined;
  readonly which: Which | "all";
  /** Runs all checks without changes. */
  readonly dryRun?: boolean | undefined;
  /** Undoes a migration that is unfinished, or after which nothing was written. */
  readonly rollback?: boolean | undefined;
  /** Leaves deleted records behind, in the archived source. */
  readonly withoutDeleted?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly progress?: ((done: number, total: number | undefined, message?: string) => void) | undefined;
  /** Called after each write, for tests that kill the process there. */
  readonly trace?: Trace | undefined;
}

export interface MigratedDatabase {
  readonly name: string;
  /**
   * `planned`: a dry run. `unchanged`: already migrated; or, with `to` equal to `from`, deleted on PostgreSQL. `rolled_back`: a migration
   * was undone.
   */
  readonly outcome: "planned" | "migrated" | "rolled_back" | "unchanged";
  readonly from: string;
  readonly to: string;
  readonly rows: number;
  readonly tables: readonly TableDigest[];
  /** The location of the archived source. */
  readonly archive?: string | undefined;
}

/** Migrates databases between SQLite and PostgreSQL. */
export interface Migrations {
  migrate(input: MigrateInput): Promise<{ readonly databases: readonly MigratedDatabase[] }>;
}

export interface MigrationRules {
  /** Hosts to which callers with an API key may migrate, with a port unless it is 5432. */
  readonly allowedHosts: readonly string[];
}

export interface MigrationDeps {
  find(which: Which): MigratableDatabase;
  /** Returns every database with a SQLite file or a migration record. */
  all(): Promise<readonly MigratableDatabase[]>;
  /** The PostgreSQL URL of the configured storage, if that is PostgreSQL. */
  readonly baseUrl?: string | undefined;
  readonly now: () => string;
  /** Raises an error with advice if no database can be migrated to this URL. */
  readonly checkTarget: (url: string) => Promise<void>;
  /** Makes new projects begin at this URL; `undefined`: in SQLite. */
  readonly placeNewProjects: (url: string | undefined) => void;
}

export function migrations({ find, all, baseUrl, now, checkTarget, placeNewProjects }: MigrationDeps): Migrations {
  async function one(database: MigratableDatabase, input: MigrateInput): Promise<MigratedDatabase> {
    const record = database.records.read();
    if (input.rollback) return rollBack(database, input, record);
    const to = input.to ?? unfinishedTarget(record);
    if (to === "sqlite") return down(database, input, record);
    return up(database, input, record, assertPostgresUrl(to));
  }

  async function up(
    database: MigratableDatabase,
    input: MigrateInput,
    record: MigrationRecord | undefined,
    url: string,
  ): Promise<MigratedDatabase> {
    return withEndpoints(database, "up", url, input, async (migration) => {
      if (record?.direction === "down")
        throw unfinishedError(database, "It goes back to SQLite: finish it with --to sqlite, or undo it with --rollback.");
      if (record && record.where !== migration.target.where)
        throw record.state === "migrated"
          ? new CairnError("conflict", `${database.name} was already migrated to ${record.where}. Migrate it back first with --to sqlite.`)
          : unfinishedError(database, `It goes to ${record.where}: finish it with that target, or undo it with --rollback.`);
      if (record?.state === "migrated") {
        if (record.url !== url) database.records.write({ ...record, url }); // for example with another password
        return describe(database, "unchanged", migration, record.tables ?? [], record.archive);
      }
      await claim(database, migration, record);
      if (!record && !(await migration.source.exists()))
        throw new CairnError("not_found", `${database.name} has no database ${migration.source.where}, so there is nothing to migrate.`);
      if (!record || input.dryRun) {
        const tables = await planMigration(migration, "up");
        if (input.dryRun) return describe(database, "planned", migration, tables);
        expectRows(input, tables);
      }
      return finish(database, migration, record, record ? { ...record, url } : begin(database, "up", url, migration.target.where, input));
    });
  }

  async function down(database: MigratableDatabase, input: MigrateInput, record: MigrationRecord | undefined): Promise<MigratedDatabase> {
    const url = record?.url ?? baseUrl;
    if (url === undefined) throw new CairnError("conflict", `${database.name} is already in SQLite. Nothing was changed.`);
    if (record?.direction === "up" && record.state !== "migrated")
      throw unfinishedError(database, `It goes to ${record.where}: finish it, or undo it with --rollback.`);
    return withEndpoints(database, "down", url, input, async (migration) => {
      if (record?.direction === "down") return finish(database, migration, record, record);
      await claim(database, migration, record);
      if (record && input.which === "all" && (await migration.source.isRemoved())) return dropRecord(database, migration, input);
      if (!(await migration.source.exists()))
        throw new CairnError("not_found", `There is no ${migration.source.where}, so there is nothing to migrate back.`);
      const tables = await planMigration(migration, "down");
      if (input.dryRun) return describe(database, "planned", migration, tables);
      expectRows(input, tables);
      return finish(database, migration, record, { ...begin(database, "down", url, migration.source.where, input), before: record });
    });
  }

  async function rollBack(
    database: MigratableDatabase,
    input: MigrateInput,
    record: MigrationRecord | undefined,
  ): Promise<MigratedDatabase> {
    if (!record) {
      const { name, path } = database;
      if (!input.dryRun && (await database.dropStrayFence()))
        return { name, outcome: "rolled_back", from: path, to: path, rows: 0, tables: [] };
      throw new CairnError("conflict", `${name} was not migrated, so there is nothing to undo.`);
    }
    if (record.isNew)
      throw new CairnError(
        "conflict",
        `${database.name} was created on PostgreSQL, so there is no migration to undo. Migrate it to SQLite with --to sqlite.`,
      );
    if (record.state !== "migrated" && record.archive === undefined && !record.rollback)
      return withEndpoints(database, record.direction, record.url, input, async (migration) => {
        if (!input.dryRun) {
          await claim(database, migration, record);
          await undoMigration(migration, record);
        }
        return describe(database, input.dryRun ? "planned" : "rolled_back", migration, []);
      });
    if (record.direction === "down")
      return withEndpoints(database, "down", record.url, input, (migration) => finish(database, migration, record, record));
    // After the source is archived a migration can only be completed: complete it first, then roll back.
    if (record.state !== "migrated")
      await withEndpoints(database, "up", record.url, input, (migration) => finish(database, migration, record, record));
    const migrated = database.records.read()!;
    return withEndpoints(database, "down", migrated.url, input, async (migration) => {
      await claim(database, migration, migrated);
      if (await migration.source.isRemoved()) {
        if (input.which === "all") return dropRecord(database, migration, input);
        throw new CairnError(
          "not_found",
          `${database.name} was deleted in ${migration.source.where}, so there is no migration to undo. Its file from before the migration is ${migrated.archive}.`,
        );
      }
      if (input.dryRun) return describe(database, "planned", migration, migrated.tables ?? []);
      return finish(database, migration, migrated, {
        ...begin(database, "down", migrated.url, migrated.where, {}),
        rollback: true,
        before: migrated,
      });
    });
  }

  /** Forgets a database that was deleted on PostgreSQL: it must not stop the migration of the others. */
  function dropRecord(database: MigratableDatabase, migration: Migration, { dryRun }: MigrateInput): MigratedDatabase {
    if (!dryRun) database.records.remove();
    return { ...describe(database, "unchanged", migration, []), to: migration.source.where };
  }

  function begin(
    database: MigratableDatabase,
    direction: MigrationRecord["direction"],
    url: string,
    where: string,
    { withoutDeleted }: Pick<MigrateInput, "withoutDeleted">,
  ): MigrationRecord {
    return {
      migrationId: database.newMigrationId(),
      direction,
      state: "fencing",
      url,
      where,
      projectId: database.projectId,
      startedAt: now(),
      ...(withoutDeleted && { withoutDeleted }),
    };
  }

  /** Locks both sides and raises `conflict` if another process changed the record since it was read. */
  async function claim(
    { name, records }: MigratableDatabase,
    { source, target }: Migration,
    seen: MigrationRecord | undefined,
  ): Promise<void> {
    await source.lock();
    await target.lock();
    if (JSON.stringify(records.read()) !== JSON.stringify(seen))
      throw new CairnError("conflict", `Another process migrated ${name} meanwhile. Run the command again to see where it is.`);
  }

  async function finish(
    database: MigratableDatabase,
    migration: Migration,
    seen: MigrationRecord | undefined,
    record: MigrationRecord,
  ): Promise<MigratedDatabase> {
    await claim(database, migration, seen);
    if (!seen) database.records.begin(record);
    const done = await runMigration(migration, record);
    return describe(database, done.rollback ? "rolled_back" : "migrated", migration, done.tables ?? [], done.archive);
  }

  return {
    async migrate(input) {
      const selected = input.which === "all" ? await all() : [find(input.which)];
      const databases: MigratedDatabase[] = [];
      const isForAll = input.which === "all" && !input.dryRun;
      const newPlace = input.which === "all" && !input.rollback && input.to !== "sqlite" ? input.to : undefined;
      // New projects will begin there, also if there is no database to migrate.
      if (newPlace !== undefined) await checkTarget(assertPostgresUrl(newPlace));
      // First, so that none is created on PostgreSQL while the others leave it.
      if (isForAll && (input.rollback || input.to === "sqlite")) placeNewProjects(undefined);
      const unfinishedError = selected.filter(({ records }) => unfinishedTarget(records.read()) !== undefined);
      const finishing = input.which === "all" && !input.rollback && input.to === undefined && unfinishedError.length > 0;
      for (const database of finishing ? unfinishedError : selected) {
        // With "all", databases that are already in place are skipped.
        const backwards = input.rollback || (input.to === "sqlite" && baseUrl === undefined);
        const record = database.records.read();
        if (input.which === "all" && ((backwards && !record) || (input.rollback && record?.isNew))) continue;
        databases.push(await one(database, input));
      }
      if (isForAll && newPlace !== undefined) placeNewProjects(newPlace);
      return { databases };
    },
  };
}

function assertPostgresUrl(to: string | undefined): string {
  if (to !== undefined && /^postgres(ql)?:\/\//.test(to)) return to;
  throw new CairnError("invalid_input", 'to: use a postgres:// URL, or "sqlite" to migrate back.');
}

/** Returns the target of an unfinished migration, so that it can be finished without naming it. */
function unfinishedTarget(record: MigrationRecord | undefined): string | undefined {
  if (!record || record.state === "migrated") return undefined;
  return record.direction === "down" ? "sqlite" : record.url;
}

/** Expected number of rows per call, once known; for progress. */
const totals = new WeakMap<MigrateInput, number>();

/** Sets the expected number of rows: each is copied and then verified. */
function expectRows(input: MigrateInput, tables: readonly TableDigest[]): void {
  totals.set(input, 2 * tables.reduce((sum, { rows }) => sum + rows, 0));
}

async function withEndpoints<T>(
  database: MigratableDatabase,
  direction: MigrationRecord["direction"],
  url: string,
  input: MigrateInput,
  work: (migration: Migration) => Promise<T>,
): Promise<T> {
  const trace = input.trace ?? (() => {});
  const ends = database[direction](url, trace);
  let done = 0;
  let total: number | undefined;
  const watch = {
    signal: input.signal,
    rows(count: number, what: string) {
      if (total !== totals.get(input)) [done, total] = [0, totals.get(input)];
      done += count;
      input.progress?.(done, total, `${database.name}: ${what}`);
    },
  };
  try {
    // An unfinished migration continues as it was started.
    const { withoutDeleted } = unfinishedTarget(database.records.read()) === undefined ? input : database.records.read()!;
    const shape = withoutDeleted ? omitTable(database.shape, "deleted_records") : database.shape;
    return await work({ ...ends, shape, records: database.records, watch, trace });
  } finally {
    await ends.source.close();
    await ends.target.close();
  }
}

function omitTable(shape: DatabaseShape, omitted: string): DatabaseShape {
  return { ...shape, tables: shape.tables.filter(({ name }) => name !== omitted) };
}

function describe(
  { name }: MigratableDatabase,
  outcome: MigratedDatabase["outcome"],
  { source, target }: Migration,
  tables: readonly TableDigest[],
  archive?: string,
): MigratedDatabase {
  return { name, outcome, from: source.where, to: target.where, rows: tables.reduce((sum, { rows }) => sum + rows, 0), tables, archive };
}

function unfinishedError({ name }: MigratableDatabase, what: string): CairnError {
  return new CairnError("conflict", `A migration of ${name} is unfinished. ${what}`);
}
