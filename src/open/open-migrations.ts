import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { THREADS_SCHEMA, threadSchema as threadsOnPostgres } from "../adapters/langgraph/postgres-schema.ts";
import { threadSchema as threadsOnSqlite } from "../adapters/langgraph/sqlite-schema.ts";
import { type MigratableDatabase, type Migrations, migrations, type Which } from "../migrate/service.ts";
import { PROJECT_SHAPE, RUNS_SHAPE, SYSTEM_SHAPE, THREADS_SHAPE } from "../migrate/shapes.ts";
import { CairnError } from "../model/errors.ts";
import { type Clock, projectDatabaseName, SHARED_PROJECT_ID, sha256Hex, systemDatabaseName } from "../model/ids.ts";
import type { DatabaseSchema } from "../model/schema.ts";
import { assertSystemId } from "../model/system-rules.ts";
import type { DatabaseShape } from "../ports/migration.ts";
import { describeUrl } from "../stores/postgres/driver/driver.ts";
import { postgresMigrationSource } from "../stores/postgres/migration/source.ts";
import { postgresMigrationTarget } from "../stores/postgres/migration/target.ts";
import { projectSchema as projectsOnPostgres } from "../stores/postgres/projects/project-schema.ts";
import { RUNS_SCHEMA, runSchema as runsOnPostgres } from "../stores/postgres/runs/schema.ts";
import { systemSchema as systemsOnPostgres } from "../stores/postgres/systems/schema.ts";
import { databaseFiles } from "../stores/sqlite/driver/database-files.ts";
import { writeNewProjects } from "../stores/sqlite/migration/new-projects.ts";
import {
  createMigrationRecord,
  readMigrationRecord,
  removeMigrationRecord,
  writeMigrationRecord,
} from "../stores/sqlite/migration/record.ts";
import { dropStrayFence, sqliteMigrationSource } from "../stores/sqlite/migration/source.ts";
import { sqliteMigrationTarget } from "../stores/sqlite/migration/target.ts";

export interface MigrationsOptions {
  readonly dataDir: string;
  readonly stateDir: string;
  readonly baseUrl?: string | undefined;
  readonly now: Clock;
}

/** Composes the migration service from the stores' sources and targets. */
export function openMigrations({ dataDir, stateDir, baseUrl, now }: MigrationsOptions): Migrations {
  const files = databaseFiles({ dataDir, stateDir });
  const migratable = (described: Described) => describeDatabase(described, now);

  function find(which: Which): MigratableDatabase {
    if (which.kind === "threads")
      return migratable({
        name: `The threads in ${which.path}`,
        path: resolve(which.path),
        schema: THREADS_SCHEMA,
        shape: THREADS_SHAPE,
        sqlite: threadsOnSqlite,
        postgres: threadsOnPostgres,
      });
    if (which.kind === "system") assertSystemId(which.id);
    const { path, schema: sqlite } = files.fileOf(which);
    const { id } = which;
    switch (which.kind) {
      case "project":
      case "shared": {
        const name = which.kind === "shared" ? "The shared database" : `The project ${id}`;
        const schema = projectDatabaseName(id);
        return migratable({ name, projectId: id, path, schema, shape: PROJECT_SHAPE, sqlite, postgres: projectsOnPostgres });
      }
      case "code":
        throw new CairnError("invalid_input", "A code index is not migrated: it is built again on the other side with: cairn code index");
      case "runs":
        return migratable({ name: "The runs", path, schema: RUNS_SCHEMA, shape: RUNS_SHAPE, sqlite, postgres: runsOnPostgres });
      case "system": {
        const schema = systemDatabaseName(id);
        return migratable({
          name: `The system ${id}`,
          projectId: id,
          path,
          schema,
          shape: SYSTEM_SHAPE,
          sqlite,
          postgres: systemsOnPostgres,
        });
      }
    }
  }

  return migrations({
    find,
    baseUrl,
    now,
    async checkTarget(url) {
      const schema = projectDatabaseName(SHARED_PROJECT_ID);
      const target = postgresMigrationTarget({
        ...{ url, schema, definition: projectsOnPostgres, shape: PROJECT_SHAPE },
        sameSource: () => false,
      });
      try {
        await target.check();
      } finally {
        await target.close();
      }
    },
    placeNewProjects(url) {
      const place = url === undefined ? undefined : { url, where: describeUrl(url), since: now() };
      writeNewProjects(join(dataDir, "projects"), place);
    },
    async all() {
      const listed = await files.list();
      const broken = listed.find(({ problem }) => problem !== undefined);
      if (broken) throw new CairnError("unavailable", `${broken.path} cannot be read: ${broken.problem}. Nothing was changed.`);
      // Includes databases that a killed migration left without a file.
      const names = new Map([...listed, ...files.recordedMigrations()].map(({ kind, id }) => [`${kind} ${id}`, { kind, id }]));
      return [...names.values()].map(find);
    },
  });
}

interface Described {
  readonly name: string;
  readonly projectId?: string;
  readonly path: string;
  readonly schema: string;
  readonly shape: DatabaseShape;
  readonly sqlite: DatabaseSchema;
  readonly postgres: DatabaseSchema;
}

function describeDatabase({ name, projectId, path, schema, shape, sqlite, postgres }: Described, now: Clock): MigratableDatabase {
  // Distinguishes migrations of this file from those of another machine or folder with the same project.
  const source = sha256Hex(`${hostname()}:${path}`).slice(0, 8);
  return {
    name,
    projectId,
    shape,
    records: {
      read: () => readMigrationRecord(path),
      begin: (record) => createMigrationRecord(path, record),
      write: (record) => writeMigrationRecord(path, record),
      remove: () => removeMigrationRecord(path),
    },
    path,
    dropStrayFence: () => dropStrayFence(path),
    newMigrationId: () =>
      `${now()
        .replace(/[-:.+]/g, "")
        .toLowerCase()}-${source}`,
    up: (url, trace) => ({
      source: sqliteMigrationSource({ path, schema: sqlite, shape, trace }),
      target: postgresMigrationTarget({ url, schema, definition: postgres, shape, trace, sameSource: (id) => id.endsWith(`-${source}`) }),
    }),
    down: (url, trace) => ({
      source: postgresMigrationSource({
        url,
        schema,
        definition: postgres,
        shape,
        trace,
        migratedTo: `the SQLite file ${path} on ${hostname()}`,
      }),
      target: sqliteMigrationTarget({ path, schema: sqlite, shape, trace }),
    }),
  };
}
