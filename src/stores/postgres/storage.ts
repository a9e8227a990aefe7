import type { RecordReport } from "../../model/damaged-record.ts";
import { CairnError } from "../../model/errors.ts";
import { projectDatabaseName } from "../../model/ids.ts";
import type { ProjectStore, Storage } from "../../ports/storage.ts";
import { findSearchBounds } from "./catalogue/search-bounds.ts";
import { postgresCatalogue } from "./catalogue/store.ts";
import { CITUS_BYTES, findCitus, LOCAL_BYTES } from "./driver/citus.ts";
import { renameSchema, schemaProblems } from "./driver/damage.ts";
import { databaseOf, type PostgresSource, type PostgresTx, quoteName } from "./driver/driver.ts";
import { ensurePgvector } from "./driver/pgvector.ts";
import { ensureSchema, tableExists } from "./driver/schema-version.ts";
import { toTimestamp } from "./driver/time.ts";
import { probeWrite } from "./driver/write-probe.ts";
import { checkRecords, repairRecords } from "./projects/check-records.ts";
import { postgresCheckpoints } from "./projects/checkpoints.ts";
import { postgresCode } from "./projects/code/store.ts";
import { postgresProjectEvents } from "./projects/events.ts";
import { postgresKnowledge } from "./projects/knowledge.ts";
import { openProjectTables } from "./projects/open-project-tables.ts";
import { projectSchema } from "./projects/project-schema.ts";
import type { ProjectTables } from "./projects/project-tables.ts";

export type PostgresStorageOptions = PostgresSource & {
  readonly now: () => string;
  /** Up to this many records, semantic search compares all of them; above, it uses the index. */
  readonly exactMax?: number;
};

/** Maximum number of projects that are cached as existing, so that using one needs no query. */
const KNOWN_MAX = 10_000;
/** Up to this many vectors an exact scan is as fast as the index, and it misses nothing. */
const EXACT_MAX = 20_000;

/** Projects as PostgreSQL schemas, one each, in one database. */
export function postgresStorage({ now, exactMax = EXACT_MAX, ...options }: PostgresStorageOptions): Storage {
  const database = databaseOf(options);
  const pgvector = rememberSuccess(() => ensurePgvector(database));
  const citus = rememberSuccess(() => findCitus(database));
  const schemaOptions = async () => ({ typesIn: await pgvector(), isDistributed: (await citus()) !== undefined });
  const known = new Map<string, Promise<ProjectStore | undefined>>();
  const catalogue = postgresCatalogue(database);

  /** Caches the lookup while it runs, and permanently if the project exists. */
  function remember<T extends ProjectStore | undefined>(projectId: string, find: () => Promise<T>): Promise<T> {
    const finding = find();
    known.set(projectId, finding);
    const forget = () => known.get(projectId) === finding && known.delete(projectId);
    finding.then((project) => project ?? forget(), forget);
    for (const [oldest] of known) if (known.size > KNOWN_MAX) known.delete(oldest);
    return finding;
  }

  async function make(projectId: string): Promise<ProjectStore> {
    const schema = projectDatabaseName(projectId);
    await ensureSchema(database, schema, projectSchema, await schemaOptions());
    const owner = await database.write(
      schema,
      async (tx) => {
        const found = await ownerOf(tx);
        if (found !== undefined) return found;
        await tx.run(
          "INSERT INTO project_info (id, project_id, created_at) VALUES (1, $1, $2) ON CONFLICT DO NOTHING",
          projectId,
          toTimestamp(now()),
        );
        return ownerOf(tx);
      },
      { idempotent: true },
    );
    assertOwner(owner, projectId, schema);
    catalogue.forget(projectId); // an announcement for an earlier schema of this project
    await catalogue.announceWrite(projectId);
    return stores(projectId);
  }

  async function locate(projectId: string): Promise<ProjectStore | undefined> {
    const schema = projectDatabaseName(projectId);
    const there = await database.read(schema, (tx) => tableExists(tx, schema, "project_info"));
    if (!there) return undefined;
    await ensureSchema(database, schema, projectSchema, await schemaOptions());
    const owner = await database.read(schema, ownerOf);
    if (owner === undefined) return undefined; // created by a process that died before its first write
    assertOwner(owner, projectId, schema);
    return stores(projectId);
  }

  async function tablesOf(projectId: string): Promise<ProjectTables> {
    return openProjectTables({
      ...{ database, projectId, exactMax, pgvector: await pgvector(), isDistributed: (await citus()) !== undefined },
      announceWrite: () => catalogue.announceWrite(projectId),
      forget: () => known.delete(projectId),
      recreate: () => remember(projectId, () => make(projectId)),
    });
  }

  async function stores(projectId: string): Promise<ProjectStore> {
    const tables = await tablesOf(projectId);
    return {
      projectPath: projectId,
      checkpoints: postgresCheckpoints(projectId, tables),
      knowledge: postgresKnowledge(tables),
      code: postgresCode(projectId, tables),
      events: postgresProjectEvents(tables),
    };
  }

  async function find(projectId: string): Promise<ProjectStore | undefined> {
    return known.get(projectId) ?? remember(projectId, () => locate(projectId));
  }

  async function recordReport(projectId: string): Promise<RecordReport> {
    const there = (await find(projectId)) !== undefined;
    if (!there) return { damaged: [], stale: [], quarantined: 0 };
    const found = await checkRecords(await tablesOf(projectId));
    const difference = await catalogue.findDifference(projectId);
    return difference === undefined ? found : { ...found, stale: [...found.stale, difference] };
  }

  return {
    async create(projectId) {
      return (await known.get(projectId)) ?? remember(projectId, () => make(projectId));
    },

    find,

    projects: catalogue.projects,
    catalogue: catalogue.read,
    searchBounds: async (query) => findSearchBounds(database, await pgvector(), query),

    async sizeBytes(projectId) {
      const size = (await citus()) ? CITUS_BYTES : LOCAL_BYTES;
      const found = await database.read("pg_catalog", (tx) =>
        tx.get<{ bytes: string | null }>(
          `SELECT sum(${size})::text AS bytes FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
           WHERE n.nspname = $1 AND c.relkind IN ('r', 'm')`,
          projectDatabaseName(projectId),
        ),
      );
      return found?.bytes == null ? undefined : Number(found.bytes);
    },

    async checkProject(projectId) {
      const schema = projectDatabaseName(projectId);
      const location = `${database.where} (schema ${schema})`;
      const problems = await schemaProblems(database, schema);
      const found = problems?.length === 0 ? await recordReport(projectId) : { damaged: [], stale: [], quarantined: 0 };
      const count = (problems?.length ?? 0) + found.damaged.length + found.stale.length;
      const state = !problems ? "absent" : count > 0 ? "damaged" : "sound";
      return { projectPath: projectId, location, state, problems: problems ?? [], ...found };
    },

    checkRecords: recordReport,

    async repairRecords(projectId) {
      if ((await find(projectId)) === undefined) return { quarantined: [], rebuilt: [] };
      const isWrong = (await catalogue.findDifference(projectId)) !== undefined;
      if (isWrong) await catalogue.recount(projectId);
      const repair = await repairRecords(await tablesOf(projectId), now());
      return isWrong ? { ...repair, rebuilt: [...repair.rebuilt, "catalogue of projects"] } : repair;
    },

    async quarantine(projectId, problems) {
      const schema = projectDatabaseName(projectId);
      known.delete(projectId);
      const movedTo = await renameSchema(database, schema, { projectPath: projectId, at: now(), problems });
      await catalogue.remove(projectId);
      return {
        projectPath: projectId,
        location: `${database.where} (schema ${schema})`,
        movedTo: `${database.where} (schema ${movedTo})`,
        problems,
      };
    },

    async remove(projectId) {
      const schema = projectDatabaseName(projectId);
      known.delete(projectId);
      if ((await locate(projectId)) === undefined) throw new CairnError("not_found", `There is no schema ${schema} in ${database.where}.`);
      await database.write(schema, async (tx) => {
        await tx.run("UPDATE project_info SET project_id = project_id"); // refused while the schema is being migrated
        await tx.exec(`DROP SCHEMA ${quoteName(schema)} CASCADE`);
      });
      await catalogue.remove(projectId);
    },

    async check() {
      const may = await database.read("pg_catalog", (tx) =>
        tx.get<{ create: boolean }>("SELECT has_database_privilege(current_database(), 'CREATE') AS create"),
      );
      if (!may?.create)
        throw new CairnError(
          "unavailable",
          `The database user may not make schemas in ${database.where}. Grant it CREATE on the database.`,
        );
      await citus();
      await probeWrite(database);
    },

    close: () => database.close(),
  };
}

/** Returns a function that asks once, and again after a failure. */
function rememberSuccess<T>(ask: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | undefined;
  return () => {
    asked ??= ask();
    asked.catch(() => {
      asked = undefined;
    });
    return asked;
  };
}

async function ownerOf(tx: PostgresTx): Promise<string | undefined> {
  return (await tx.get<{ project_id: string }>("SELECT project_id FROM project_info WHERE id = 1"))?.project_id;
}

function assertOwner(owner: string | undefined, projectId: string, schema: string): void {
  if (owner !== projectId)
    throw new CairnError(
      "conflict",
      `The schema ${schema} belongs to the project "${owner}", not to "${projectId}". It was probably renamed by hand: rename it back.`,
      { details: { schema } },
    );
}
