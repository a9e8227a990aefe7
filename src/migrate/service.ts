import type { DatabaseName } from "../model/backup.ts";
import { CairnError } from "../model/errors.ts";
import type { MoveRecord, TableDigest } from "../model/migration.ts";
import type { DatabaseShape, MoveJournal, MoveSource, MoveTarget, Trace } from "../ports/migration.ts";
import { carryOut, type Move, plan, undo } from "./move.ts";

/** Which database is meant: one of Cairn's own, or a file of LangGraph's threads, which may be anywhere. */
export type Which = DatabaseName | { readonly kind: "threads"; readonly path: string };

/** One database that can be moved, with what its two ends are made of. */
export interface Movable {
  /** For people. */
  readonly name: string;
  readonly projectId?: string | undefined;
  readonly shape: DatabaseShape;
  readonly journal: MoveJournal;
  newMoveId(): string;
  /** Where its SQLite file is, or would be. */
  readonly path: string;
  /** Lets writes through to a file that is paused though no move is noted. Says whether it was. */
  free(): Promise<boolean>;
  up(url: string, trace: Trace): { readonly source: MoveSource; readonly target: MoveTarget };
  down(url: string, trace: Trace): { readonly source: MoveSource; readonly target: MoveTarget };
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

export interface MovedDatabase {
  readonly name: string;
  /** `planned`: a dry run. `unchanged`: it is there already. `returned`: a move was undone. */
  readonly outcome: "planned" | "moved" | "returned" | "unchanged";
  readonly from: string;
  readonly to: string;
  readonly rows: number;
  readonly tables: readonly TableDigest[];
  /** Where the source is kept. */
  readonly archive?: string | undefined;
}

/** Moves databases between SQLite and PostgreSQL. */
export interface Migrations {
  migrate(input: MigrateInput): Promise<{ readonly databases: readonly MovedDatabase[] }>;
}

export interface MigrationRules {
  /** Hosts, with a port unless it is 5432, to which callers with an API key may migrate. */
  readonly allowedHosts: readonly string[];
}

export interface MigrationDeps {
  find(which: Which): Movable;
  /** Every database that is kept in a file, or was. */
  all(): Promise<readonly Movable[]>;
  /** The PostgreSQL that everything is kept in by configuration, if it is one. */
  readonly baseUrl?: string | undefined;
  readonly now: () => string;
}

export function migrations({ find, all, baseUrl, now }: MigrationDeps): Migrations {
  async function one(movable: Movable, input: MigrateInput): Promise<MovedDatabase> {
    const record = movable.journal.read();
    if (input.rollback) return goBack(movable, input, record);
    const to = input.to ?? unfinishedTarget(record);
    if (to === "sqlite") return down(movable, input, record);
    if (to === undefined || !/^postgres(ql)?:\/\//.test(to))
      throw new CairnError("invalid_input", 'to: give a postgres:// URL, or "sqlite" for the way back.');
    return up(movable, input, record, to);
  }

  async function up(movable: Movable, input: MigrateInput, record: MoveRecord | undefined, url: string): Promise<MovedDatabase> {
    return withEnds(movable, "up", url, input, async (move) => {
      if (record?.direction === "down")
        throw unfinished(movable, "It was on its way back: finish that with --to sqlite, or undo it with --rollback.");
      if (record && record.where !== move.target.where)
        throw record.state === "moved"
          ? new CairnError("conflict", `${movable.name} was moved to ${record.where} already. Move it back first with --to sqlite.`)
          : unfinished(movable, `It was on its way to ${record.where}: name that one again, or undo it with --rollback.`);
      if (record?.state === "moved") {
        if (record.url !== url) movable.journal.write({ ...record, url }); // another password, say
        return reported(movable, "unchanged", move, record.tables ?? [], record.archive);
      }
      await alone(movable, move, record);
      if (!record && !(await move.source.exists()))
        throw new CairnError("not_found", `${movable.name} has no database ${move.source.where}, so there is nothing to move.`);
      if (!record || input.dryRun) {
        const tables = await plan(move, "up");
        if (input.dryRun) return reported(movable, "planned", move, tables);
        expect(input, tables);
      }
      return finish(movable, move, record, record ? { ...record, url } : begin(movable, "up", url, move.target.where));
    });
  }

  async function down(movable: Movable, input: MigrateInput, record: MoveRecord | undefined): Promise<MovedDatabase> {
    const url = record?.url ?? baseUrl;
    if (url === undefined) throw new CairnError("conflict", `${movable.name} is in SQLite already. Nothing was changed.`);
    if (record?.direction === "up" && record.state !== "moved")
      throw unfinished(movable, `It was on its way to ${record.where}: finish that, or undo it with --rollback.`);
    return withEnds(movable, "down", url, input, async (move) => {
      if (record?.direction === "down") return finish(movable, move, record, record);
      await alone(movable, move, record);
      if (!(await move.source.exists()))
        throw new CairnError("not_found", `There is no ${move.source.where}, so there is nothing to move back.`);
      const tables = await plan(move, "down");
      if (input.dryRun) return reported(movable, "planned", move, tables);
      expect(input, tables);
      return finish(movable, move, record, { ...begin(movable, "down", url, move.source.where), before: record });
    });
  }

  async function goBack(movable: Movable, input: MigrateInput, record: MoveRecord | undefined): Promise<MovedDatabase> {
    if (!record) {
      const { name, path } = movable;
      if (!input.dryRun && (await movable.free())) return { name, outcome: "returned", from: path, to: path, rows: 0, tables: [] };
      throw new CairnError("conflict", `${name} was not moved, so there is nothing to undo.`);
    }
    if (record.state !== "moved" && record.archive === undefined && !record.rollback)
      return withEnds(movable, record.direction, record.url, input, async (move) => {
        if (!input.dryRun) {
          await alone(movable, move, record);
          await undo(move, record);
        }
        return reported(movable, input.dryRun ? "planned" : "returned", move, []);
      });
    if (record.direction === "down") return withEnds(movable, "down", record.url, input, (move) => finish(movable, move, record, record));
    // Once the source is archived a move only goes forward, also on its way to being undone.
    if (record.state !== "moved") await withEnds(movable, "up", record.url, input, (move) => finish(movable, move, record, record));
    const moved = movable.journal.read()!;
    return withEnds(movable, "down", moved.url, input, async (move) => {
      if (input.dryRun) return reported(movable, "planned", move, moved.tables ?? []);
      return finish(movable, move, moved, { ...begin(movable, "down", moved.url, moved.where), rollback: true, before: moved });
    });
  }

  function begin(movable: Movable, direction: MoveRecord["direction"], url: string, where: string): MoveRecord {
    return { moveId: movable.newMoveId(), direction, state: "pausing", url, where, projectId: movable.projectId, startedAt: now() };
  }

  /** Nobody else moves it from here on, and nobody has since it was looked at. */
  async function alone({ name, journal }: Movable, { source, target }: Move, seen: MoveRecord | undefined): Promise<void> {
    await source.hold();
    await target.hold();
    if (JSON.stringify(journal.read()) !== JSON.stringify(seen))
      throw new CairnError("conflict", `${name} was moved by another process meanwhile. Run the command again to see where it is.`);
  }

  async function finish(movable: Movable, move: Move, seen: MoveRecord | undefined, record: MoveRecord): Promise<MovedDatabase> {
    await alone(movable, move, seen);
    if (!seen) movable.journal.begin(record);
    const done = await carryOut(move, record);
    return reported(movable, done.rollback ? "returned" : "moved", move, done.tables ?? [], done.archive);
  }

  return {
    async migrate(input) {
      const movables = input.which === "all" ? await all() : [find(input.which)];
      const databases: MovedDatabase[] = [];
      const unfinished = movables.filter(({ journal }) => unfinishedTarget(journal.read()) !== undefined);
      const finishing = input.which === "all" && !input.rollback && input.to === undefined && unfinished.length > 0;
      for (const movable of finishing ? unfinished : movables) {
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
function unfinishedTarget(record: MoveRecord | undefined): string | undefined {
  if (!record || record.state === "moved") return undefined;
  return record.direction === "down" ? "sqlite" : record.url;
}

/** How many rows are still to be handled, as far as that is known. */
const totals = new WeakMap<MigrateInput, number>();

/** Every row is copied and then verified. */
function expect(input: MigrateInput, tables: readonly TableDigest[]): void {
  totals.set(input, 2 * tables.reduce((sum, { rows }) => sum + rows, 0));
}

async function withEnds<T>(
  movable: Movable,
  direction: MoveRecord["direction"],
  url: string,
  input: MigrateInput,
  work: (move: Move) => Promise<T>,
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

function reported(
  { name }: Movable,
  outcome: MovedDatabase["outcome"],
  { source, target }: Move,
  tables: readonly TableDigest[],
  archive?: string,
): MovedDatabase {
  return { name, outcome, from: source.where, to: target.where, rows: tables.reduce((sum, { rows }) => sum + rows, 0), tables, archive };
}

function unfinished({ name }: Movable, what: string): CairnError {
  return new CairnError("conflict", `A move of ${name} is unfinished. ${what}`);
}
