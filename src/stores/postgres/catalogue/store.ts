import { asCairnError } from "../../../model/errors.ts";
import { projectDatabaseName, SHARED_PROJECT_ID } from "../../../model/ids.ts";
import { NO_TIME } from "../../../model/no-time.ts";
import type { DatabaseSchema } from "../../../model/schema.ts";
import type { Catalogue, ProjectEntry, UnreadProject } from "../../../ports/catalogue.ts";
import type { CatalogueOptions } from "../../../ports/storage.ts";
import type { PostgresDatabase } from "../driver/driver.ts";
import { isGone } from "../driver/errors.ts";
import { ensureSchema } from "../driver/schema-version.ts";
import { countSchemas, type SchemaCounts } from "./count.ts";
import { selectFromSchemas, tableIn } from "./schemas.ts";

/** The schema that holds the catalogue of projects. */
const SCHEMA = "cairn_catalogue";
export const CATALOGUE_TABLE = `${SCHEMA}.projects`;

/**
 * One row per project. `changes_until` is announced before a write: until then, writes need no further announcement. Counts are valid
 * if they were counted after that time; others are counted again by the call that reads them.
 */
const catalogueSchema: DatabaseSchema = {
  version: 1,
  name: "catalogue of projects",
  sql: `
    CREATE TABLE projects (
      schema_name text COLLATE "C" PRIMARY KEY,
      project_path text NOT NULL,
      checkpoints bigint NOT NULL DEFAULT 0,
      knowledge bigint NOT NULL DEFAULT 0,
      code_files bigint NOT NULL DEFAULT 0,
      last_activity_at timestamptz,
      changes_until timestamptz NOT NULL,
      counted_at timestamptz
    );
  `,
};

/** Seconds for which an announcement is valid, and the seconds that must be left of another process's announcement to rely on it. */
const ANNOUNCED_S = 120;
const LEFT_S = 90;
/** Milliseconds for which this process relies on its announcement. The rest of the time covers writes that began last. */
const RELIED_MS = 30_000;
/** Announcements that are remembered. A forgotten one is repeated. */
const REMEMBERED_MAX = 10_000;

interface Row {
  readonly schema: string;
  /** Null: the catalogue lacks the project. */
  readonly path: string | null;
  readonly checkpoints: number;
  readonly knowledge: number;
  readonly code_files: number;
  readonly last_activity_at: string | null;
  readonly settled: boolean;
}

const UNCOUNTED = { checkpoints: 0, knowledge: 0, code_files: 0, last_activity_at: null, settled: false };

/** The catalogue of the projects in one PostgreSQL database. */
export interface ProjectCatalogue {
  /** Registers the project, and records that its counts may change. Costs one statement in half a minute. */
  announceWrite(projectPath: string): Promise<void>;
  /** Makes the next write announce itself again. */
  forget(projectPath: string): void;
  /** Removes a project whose schema is gone. */
  remove(projectPath: string): Promise<void>;
  projects(): Promise<readonly string[]>;
  read(options?: CatalogueOptions): Promise<Catalogue>;
  /** Returns how the stored counts differ from the records; `undefined` if they do not. */
  findDifference(projectPath: string): Promise<string | undefined>;
  /** Counts the project again and stores the counts. */
  recount(projectPath: string): Promise<void>;
}

export function postgresCatalogue(database: PostgresDatabase): ProjectCatalogue {
  const announced = new Map<string, Moment>();
  let creating: Promise<void> | undefined;

  function ready(): Promise<void> {
    creating ??= ensureSchema(database, SCHEMA, catalogueSchema).catch((error) => {
      creating = undefined;
      throw error;
    });
    return creating;
  }

  /** Runs a statement. If the catalogue was dropped, it is created again: its content can be counted. */
  async function run<Result>(sql: string, ...params: Parameters<PostgresDatabase["statement"]>[1]): Promise<Result[]> {
    await ready();
    try {
      return await database.statement<Result>(sql, params, { idempotent: true });
    } catch (error) {
      if (!isGone(error)) throw error;
      creating = undefined;
      await ready();
      return database.statement<Result>(sql, params, { idempotent: true });
    }
  }

  /**
   * Reads the rows of existing schemas, without the remains of migrated projects. Two statements, because a catalogue on another server
   * cannot be joined with its schemas.
   */
  async function readRows(schemas?: readonly string[]): Promise<Row[]> {
    const existing = await run<{ schema: string }>(
      `SELECT n.nspname AS schema FROM pg_catalog.pg_namespace n
        WHERE n.nspname ~ '^project_[0-9a-f]{16}$' AND ($1::name[] IS NULL OR n.nspname = ANY ($1::name[]))
          AND EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.relnamespace = n.oid AND c.relname = 'checkpoints') ORDER BY n.nspname`,
      schemas ?? null,
    );
    const rows = await run<Row>(
      `SELECT schema_name AS schema, project_path AS path, checkpoints, knowledge, code_files, last_activity_at,
              coalesce(counted_at > changes_until, false) AS settled FROM ${CATALOGUE_TABLE} WHERE $1::text[] IS NULL OR schema_name = ANY ($1::text[])`,
      schemas ?? null,
    );
    const known = new Map(rows.map((row) => [row.schema, row]));
    return existing.map(({ schema }) => known.get(schema) ?? { schema, path: null, ...UNCOUNTED });
  }

  /** Registers schemas that the catalogue lacks, for example after a migration, and returns all projects. */
  async function registered(signal?: AbortSignal): Promise<readonly (Row & { readonly path: string })[]> {
    const rows = await readRows();
    const unknown = rows.filter(({ path }) => path === null).map(({ schema }) => schema);
    const { rows: owners } = await selectFromSchemas<{ schema: string; path: string }>(database, {
      schemas: unknown,
      tables: ["project_info"],
      signal,
      select: (schema, has) =>
        has("project_info") ? `SELECT '${schema}' AS schema, project_id AS path FROM ${tableIn(schema, "project_info")}` : undefined,
    });
    // A schema without an owner is that of a migrated project, or its creator died before the first write.
    const named = owners.filter(({ path }) => path !== null);
    if (named.length > 0)
      await run(
        `INSERT INTO ${CATALOGUE_TABLE} (schema_name, project_path, changes_until)
         SELECT g.schema, g.path, clock_timestamp() + make_interval(secs => $3)
           FROM unnest($1::text[], $2::text[]) AS g (schema, path) ON CONFLICT DO NOTHING`,
        named.map(({ schema }) => schema),
        named.map(({ path }) => path),
        ANNOUNCED_S, // a process may still rely on the announcement of an earlier schema of this name
      );
    const paths = new Map(named.map(({ schema, path }) => [schema, path]));
    return rows.flatMap((row) => {
      const path = row.path ?? paths.get(row.schema);
      return path === undefined ? [] : [{ ...row, path }];
    });
  }

  /** Stores counts that are newer than the stored ones. A schema without an owner has no project any more. */
  async function store(counts: readonly SchemaCounts[]): Promise<void> {
    const gone = counts.filter(({ owner }) => owner === null).map(({ schema }) => schema);
    if (gone.length > 0) await run(`DELETE FROM ${CATALOGUE_TABLE} WHERE schema_name = ANY ($1::text[])`, gone);
    const column = (of: (counted: SchemaCounts) => string | number | null) => counts.map(of);
    await run(
      `UPDATE ${CATALOGUE_TABLE} p SET checkpoints = g.checkpoints, knowledge = g.knowledge, code_files = g.code_files,
              last_activity_at = g.last_activity_at, counted_at = g.counted_at
         FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::timestamptz[], $6::timestamptz[])
              AS g (schema_name, checkpoints, knowledge, code_files, last_activity_at, counted_at)
        WHERE p.schema_name = g.schema_name AND g.counted_at > p.changes_until AND (p.counted_at IS NULL OR p.counted_at < g.counted_at)`,
      column(({ schema }) => schema),
      column(({ checkpoints }) => checkpoints),
      column(({ knowledge }) => knowledge),
      column(({ code_files }) => code_files),
      column(({ last_activity_at }) => last_activity_at),
      column(({ counted_at }) => counted_at),
    );
  }

  async function countOne(schema: string): Promise<readonly SchemaCounts[]> {
    const { rows, failed } = await countSchemas(database, [schema]);
    if (failed[0]) throw failed[0].error;
    return rows;
  }

  return {
    async announceWrite(projectPath) {
      if (projectPath === SHARED_PROJECT_ID || isRecent(announced.get(projectPath))) return;
      const began = currentMoment();
      await run(
        `INSERT INTO ${CATALOGUE_TABLE} AS p (schema_name, project_path, changes_until)
         VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3))
         ON CONFLICT (schema_name) DO UPDATE SET project_path = excluded.project_path, changes_until = excluded.changes_until
          WHERE p.changes_until < clock_timestamp() + make_interval(secs => $4) OR p.project_path <> excluded.project_path`,
        projectDatabaseName(projectPath),
        projectPath,
        ANNOUNCED_S,
        LEFT_S,
      );
      announced.delete(projectPath);
      announced.set(projectPath, began);
      if (announced.size > REMEMBERED_MAX) announced.delete(announced.keys().next().value!);
    },

    forget: (projectPath) => void announced.delete(projectPath),

    async remove(projectPath) {
      announced.delete(projectPath);
      await run(`DELETE FROM ${CATALOGUE_TABLE} WHERE schema_name = $1`, projectDatabaseName(projectPath));
    },

    projects: async () => (await registered()).map(({ path }) => path),

    async read({ isWanted = () => true, signal } = {}) {
      const wanted = (await registered(signal)).filter(({ path }) => isWanted(path));
      const paths = new Map(wanted.map(({ schema, path }) => [schema, path]));
      const projects: ProjectEntry[] = wanted.filter(({ settled }) => settled).map((row) => toEntry(row.path, row));
      const unsettled = wanted.filter(({ settled }) => !settled).map(({ schema }) => schema);
      if (unsettled.length === 0) return { projects, unread: [] };
      const { rows, late, failed } = await countSchemas(database, unsettled, signal);
      await store(rows);
      for (const row of rows) if (row.owner !== null) projects.push(toEntry(row.owner, row));
      const unread: UnreadProject[] = [
        ...late.map((schema) => ({ projectPath: paths.get(schema)!, reason: NO_TIME })),
        ...failed
          .filter(({ error }) => !isGone(error))
          .map(({ schema, error }) => ({ projectPath: paths.get(schema)!, reason: asCairnError(error).message })),
      ];
      return { projects, unread };
    },

    async findDifference(projectPath) {
      const schema = projectDatabaseName(projectPath);
      // First the records: a write that comes between the two announces itself, and the stored counts do not hold any more.
      const [counted] = await countOne(schema);
      const [row] = await readRows([schema]);
      if (!counted || !row?.settled) return undefined;
      const differing = (["checkpoints", "knowledge", "code_files"] as const).filter((name) => row[name] !== counted[name]);
      if (differing.length === 0) return undefined;
      return `the catalogue has other counts of ${differing.map((name) => name.replace("_", " ")).join(", ")}`;
    },

    async recount(projectPath) {
      const schema = projectDatabaseName(projectPath);
      await run(`UPDATE ${CATALOGUE_TABLE} SET counted_at = NULL WHERE schema_name = $1`, schema);
      await store(await countOne(schema));
    },
  };
}

/** A time by two clocks: the monotonic one stops while the machine sleeps, and the other one may be set. */
interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

function currentMoment(): Moment {
  return { monotonicMs: performance.now(), wallMs: Date.now() };
}

/** Returns whether both clocks say that this process may still rely on an announcement of that time. */
function isRecent(moment: Moment | undefined): boolean {
  if (!moment) return false;
  const { monotonicMs, wallMs } = currentMoment();
  return monotonicMs - moment.monotonicMs < RELIED_MS && Math.abs(wallMs - moment.wallMs) < RELIED_MS;
}

function toEntry(
  projectPath: string,
  { checkpoints, knowledge, code_files, last_activity_at }: Pick<Row, "checkpoints" | "knowledge" | "code_files" | "last_activity_at">,
): ProjectEntry {
  return { projectPath, checkpoints, knowledge, codeFiles: code_files, lastActivityAt: last_activity_at ?? undefined };
}
