import type { DatabaseName } from "../model/backup.ts";
import { CairnError } from "../model/errors.ts";
import type { MigrationRecord, TableDigest } from "../model/migration.ts";
import type { DatabaseShape, MigrationJournal, MigrationSource, MigrationTarget, Trace } from "../ports/migration.ts";
import { type Migration, planMigration, runMigration, undoMigration } from "./run-migration.ts";

/** Which database is meant: one of Cairn's own, or a file of LangGraph's threads, which may be anywhere. */
export type Which = DatabaseName | { readonly kind: "threads"; readonly path: string };

/** One database that can be moved, with what its two ends are made of. */
export interface MigratableDatabase {
  /** For people. */
  readonly name: string;
  readonly projectId?: string | undefined;
  readonly shape: DatabaseShape;
  readonly journal: MigrationJournal;
  newMigrationId(): string;
  /** Where its SQLite file is, or would be. */
  readonly path: string;
  /** Lets writes through to a file that is paused though no move is noted. Says whether it was. */
  dropStrayFence(): Promise<boolean>;
  up(url: string, trace: Trace): { readonly source: MigrationSource; readonly target: MigrationTarget };
  down(url: string, trace: Trace): { readonly source: MigrationSource; readonly target: MigrationTarget };
}

export interface MigrateInput {
  /** A postgres:// URL, or `sqlite` for the way back. An unfinished migration is finished without it. */
  readonly to?: string | undefined;
  readonly which: Which | "all";
  /** Checks everything and changes nothing. */
  readonly dryRun?: boolean | undefined;
  /** Undoes a move that is unfinished, or one after which nothing was written. */
  readonly rollback?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly progress?: ((done: number, total: number | undefined, message?: string) => void) | undefined;
  /** Told of each write, as it has just been made. For tests that stop it there. */
  readonly trace?: Trace | undefined;
}

export interface MigratedDatabase {
  readonly name: string;
  /** `planned`: a dry run. `unchanged`: it is there already. `rolled_back`: a move was undone. */
  readonly outcome: "planned" | "migrated" | "rolled_back" | "unchanged";
  readonly from: string;
  readonly to: string;
  readonly rows: number;
  readonly tables: readonly TableDigest[];
  /** Where the source is kept. */
  readonly archive?: string | undefined;
}

/** Moves databases between SQLite and PostgreSQL. */
export interface Migrations {
  migrate(input: MigrateInput): Promise<{ readonly databases: readonly MigratedDatabase[] }>;
}

export interface MigrationRules {
  /** Hosts, with a port unless it is 5432, to which callers with an API key may migrate. */
  readonly allowedHosts: readonly string[];
}

export interface MigrationDeps {
  find(which: Which): MigratableDatabase;
  /** Every database that is kept in a file, or was. */
  all(): Promise<readonly MigratableDatabase[]>;
  /** The PostgreSQL that everything is kept in by configuration, if it is one. */
  readonly baseUrl?: string | undefined;
  readonly now: () => string;
}

export function migrations({ find, all, baseUrl, now }: MigrationDeps): Migrations {
  async function one(movable: MigratableDatabase, input: MigrateInput): Promise<MigratedDatabase> {
    const record = movable.journal.read();
    if (input.rollback) return rollBack(movable, input, record);
    const to = input.to ?? unfinishedTarget(record);
    if (to === "sqlite") return down(movable, input, record);
    if (to === undefined || !/^postgres(ql)?:\/\//.test(to))
      throw new CairnError("invalid_input", 'to: give a postgres:// URL, or "sqlite" for the way back.');
    return up(movable, input, record, to);
  }

  async function up(
    movable: MigratableDatabase,
    input: MigrateInput,
    record: MigrationRecord | undefined,
    url: string,
  ): Promise<MigratedDatabase> {
    return withEndpoints(movable, "up", url, input, async (move) => {
      if (record?.direction === "down")
        throw unfinished(movable, "It was on its way back: finish that with --to sqlite, or undo it with --rollback.");
      if (record && record.where !== move.target.where)
        throw record.state === "migrated"
          ? new CairnError("conflict", `${movable.name} was moved to ${record.where} already. Move it back first with --to sqlite.`)
          : unfinished(movable, `It was on its way to ${record.where}: name that one again, or undo it with --rollback.`);
      if (record?.state === "migrated") {
        if (record.url !== url) movable.journal.write({ ...record, url }); // another password, say
        return describe(movable, "unchanged", move, record.tables ?? [], record.archive);
      }
      await claim(movable, move, record);
      if (!record && !(await move.source.exists()))
        throw new CairnError("not_found", `${movable.name} has no database ${move.source.where}, so there is nothing to move.`);
      if (!record || input.dryRun) {
        const tables = await planMigration(move, "up");
        if (input.dryRun) return describe(movable, "planned", move, tables);
        expectRows(input, tables);
      }
      return finish(movable, move, record, record ? { ...record, url } : begin(movable, "up", url, move.target.where));
    });
  }

  async function down(movable: MigratableDatabase, input: MigrateInput, record: MigrationRecord | undefined): Promise<MigratedDatabase> {
    const url = record?.url ?? baseUrl;
    if (url === undefined) throw new CairnError("conflict", `${movable.name} is in SQLite already. Nothing was changed.`);
    if (record?.direction === "up" && record.state !== "migrated")
      throw unfinished(movable, `It was on its way to ${record.where}: finish that, or undo it with --rollback.`);
    return withEndpoints(movable, "down", url, input, async (move) => {
      if (record?.direction === "down") return finish(movable, move, record, record);
      await claim(movable, move, record);
      if (!(await move.source.exists()))
        throw new CairnError("not_found", `There is no ${move.source.where}, so there is nothing to move back.`);
      const tables = await planMigration(move, "down");
      if (input.dryRun) return describe(movable, "planned", move, tables);
      expectRows(input, tables);
      return finish(movable, move, record, { ...begin(movable, "down", url, move.source.where), before: record });
    });
  }

  async function rollBack(
    movable: MigratableDatabase,
    input: MigrateInput,
    record: MigrationRecord | undefined,
  ): Promise<MigratedDatabase> {
    if (!record) {
      const { name, path } = movable;
      if (!input.dryRun && (await movable.dropStrayFence()))
        return { name, outcome: "rolled_back", from: path, to: path, rows: 0, tables: [] };
      throw new CairnError("conflict", `${name} was not moved, so there is nothing to undo.`);
    }
    if (record.state !== "migrated" && record.archive === undefined && !record.rollback)
      return withEndpoints(movable, record.direction, record.url, input, async (move) => {
        if (!input.dryRun) {
          await claim(movable, move, record);
          await undoMigration(move, record);
        }
        return describe(movable, input.dryRun ? "planned" : "rolled_back", move, []);
      });
    if (record.direction === "down")
      return withEndpoints(movable, "down", record.url, input, (move) => finish(movable, move, record, record));
    // Once the source is archived a move only goes forward, also on its way to being undone.
    if (record.state !== "migrated") await withEndpoints(movable, "up", record.url, input, (move) => finish(movable, move, record, record));
    const moved = movable.journal.read()!;
    return withEndpoints(movable, "down", moved.url, input, async (move) => {
      if (input.dryRun) return describe(movable, "planned", move, moved.tables ?? []);
      return finish(movable, move, moved, { ...begin(movable, "down", moved.url, moved.where), rollback: true, before: moved });
    });
  }

  function begin(movable: MigratableDatabase, direction: MigrationRecord["direction"], url: string, where: string): MigrationRecord {
    return {
      migrationId: movable.newMigrationId(),
      direction,
      state: "pausing",
      url,
      where,
      projectId: movable.projectId,
      startedAt: now(),
    };
  }

  /** Nobody else moves it from here on, and nobody has since it was looked at. */
  async function claim(
    { name, journal }: MigratableDatabase,
    { source, target }: Migration,
    seen: MigrationRecord | undefined,
  ): Promise<void> {
    await source.lock();
    await target.lock();
    if (JSON.stringify(journal.read()) !== JSON.stringify(seen))
      throw new CairnError("conflict", `${name} was moved by another process meanwhile. Run the command again to see where it is.`);
  }

  async function finish(
    movable: MigratableDatabase,
    move: Migration,
    seen: MigrationRecord | undefined,
    record: MigrationRecord,
  ): Promise<MigratedDatabase> {
    await claim(movable, move, seen);
    if (!seen) movable.journal.begin(record);
    const done = await runMigration(move, record);
    return describe(movable, done.rollback ? "rolled_back" : "migrated", move, done.tables ?? [], done.archive);
  }

  return {
    async migrate(input) {
      const movables = input.which === "all" ? await all() : [find(input.which)];
      const databases: MigratedDatabase[] = [];
      const unfinishedError = movables.filter(({ journal }) => unfinishedTarget(journal.read()) !== undefined);
      const finishing = input.which === "all" && !input.rollback && input.to === undefined && unfinishedError.length > 0;
      for (const movable of finishing ? unfinishedError : movables) {
        // Of all, those that are where they should be are no reason to stop.
        const backwards = input.rollback || (input.to === "sqlite" && baseUrl === undefined);
        if (input.which === "all" && backwards && !movable.journal.read()) continue;
        databases.push(await one(movable, input));
      }
      return { databases };
    },
  };
}

/** Returns where an unfinished migration was going, so that it can be finished without naming the target again. */
function unfinishedTarget(record: MigrationRecord | undefined): string | undefined {
  if (!record || record.state === "migrated") return undefined;
  return record.direction === "down" ? "sqlite" : record.url;
}

/** How many rows are still to be handled, as far as that is known. */
const totals = new WeakMap<MigrateInput, number>();

/** Every row is copied and then verified. */
function expectRows(input: MigrateInput, tables: readonly TableDigest[]): void {
  totals.set(input, 2 * tables.reduce((sum, { rows }) => sum + rows, 0));
}

async function withEndpoints<T>(
  movable: MigratableDatabase,
  direction: MigrationRecord["direction"],
  url: string,
  input: MigrateInput,
  work: (move: Migration) => Promise<T>,
): Promise<T> {
  const trace = input.trace ?? (() => {});
  const ends = movable[direction](url, trace);
  let done = 0;
  let total: number | undefined;
  const watch = {
    signal: input.signal,
    rows(count: number, what: string) {
      if (total !== totals.get(input)) [done, total] = [0, totals.get(input)];
      done += count;
      input.progress?.(done, total, `${movable.name}: ${what}`);
    },
  };
  try {
    return await work({ ...ends, shape: movable.shape, journal: movable.journal, watch, trace });
  } finally {
    await ends.source.close();
    await ends.target.close();
  }
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

function unfinished({ name }: MigratableDatabase, what: string): CairnError {
  return new CairnError("conflict", `A move of ${name} is unfinished. ${what}`);
}
