import type pg from "pg";
import copyStreams from "pg-copy-streams";
import { CairnError } from "../../../model/errors.ts";
import type { DatabaseSchema } from "../../../model/schema.ts";
import { type DatabaseShape, type MigrationTarget, namedValues, type Row, type TableShape, type Trace } from "../../../ports/migration.ts";
import { recordTerms } from "../../../text/terms.ts";
import { DISTRIBUTE_SCHEMA, findCitus } from "../driver/citus.ts";
import { openPostgres, quoteName } from "../driver/driver.ts";
import { ensurePgvector, indexedType, vectorIndexSql } from "../driver/pgvector.ts";
import { definitionLockName, ensureSchema, LOCK_DEFINITION, partsNeededBy } from "../driver/schema-version.ts";
import { tsvectorOf } from "../projects/full-text.ts";
import { FILL_MIRROR } from "../projects/mirror.ts";
import { COPY_HEADER, COPY_TRAILER, encodeRows } from "./binary.ts";
import { connectTo, hasTable, isTombstone, postgresCounters, postgresRows, schemaExists, transaction, unregister } from "./endpoint.ts";
import { createFence, dropFence, lockSchema, readFence, tablesOf } from "./fence.ts";
import { isOnWorker, lockOnWorker } from "./worker-lock.ts";

export interface PostgresMigrationOptions {
  readonly url: string;
  readonly schema: string;
  readonly definition: DatabaseSchema;
  readonly shape: DatabaseShape;
  readonly trace?: Trace | undefined;
  /** Returns whether a migration id belongs to the same source, so that its unfinished copy may be replaced. */
  readonly sameSource: (migrationId: string) => boolean;
}

/** Conditions for user rows in tables that are not empty in a new schema. */
const USER_ROWS: Readonly<Record<string, string>> = {
  "project code_generation": "last > 0",
  "system metadata": "key = 'system_id'",
};

/** Returns a PostgreSQL schema as the target of a migration from SQLite. The import is one transaction. */
export function postgresMigrationTarget({
  url,
  schema,
  definition,
  shape,
  trace = () => {},
  sameSource,
}: PostgresMigrationOptions): MigrationTarget {
  const database = openPostgres({ url, poolMax: 1 });
  const where = `${database.where} (schema ${schema})`;
  let client: pg.Client | undefined;
  let workerLock: pg.Client | undefined;
  const hasVectors = shape.tables.some(({ columns }) => columns.some(({ type }) => type === "vector"));

  async function connect(): Promise<pg.Client> {
    if (client) return client;
    const made = await connectTo(url, schema, where);
    try {
      await lockSchema(made, schema, where);
      await holdWorkerLock(made);
    } catch (error) {
      await made.end();
      throw error;
    }
    client = made;
    return made;
  }

  /** Holds the lock on the worker that has the schema now, if Citus placed it on one. */
  async function holdWorkerLock(db: pg.Client): Promise<void> {
    await workerLock?.end();
    workerLock = (await isOnWorker(db, schema)) ? await lockOnWorker(url, schema, where) : undefined;
  }

  async function state(): Promise<"absent" | "ours" | "occupied"> {
    const db = await connect();
    if (!(await schemaExists(db, schema)) || (await isTombstone(db, schema))) return "absent";
    const fence = await readFence(db, schema);
    if (fence) return fence.role === "target" && sameSource(fence.migrationId) ? "ours" : "occupied";
    return (await isEmpty(db)) ? "absent" : "occupied";
  }

  /** Drops the schema, which must be empty or an unfinished copy of the same source. Call it in a transaction. */
  async function dropUnused(db: pg.Client): Promise<void> {
    await db.query(LOCK_DEFINITION, [definitionLockName(schema)]);
    await db.query(`LOCK TABLE ${(await tablesOf(db, schema)).map(quoteName).join(", ")} IN ACCESS EXCLUSIVE MODE`);
    if ((await state()) === "occupied") throw occupiedError(where);
    await db.query(`DROP SCHEMA ${quoteName(schema)} CASCADE`);
  }

  /** Returns whether the schema has no user rows. */
  async function isEmpty(db: pg.Client): Promise<boolean> {
    const existing = new Set(await tablesOf(db, schema));
    for (const { kind, name } of shape.tables) {
      if (!existing.has(name)) continue;
      const { rows } = await db.query(`SELECT 1 FROM ${quoteName(name)} WHERE ${USER_ROWS[`${kind} ${name}`] ?? "true"} LIMIT 1`);
      if (rows.length > 0) return false;
    }
    return true;
  }

  return {
    where,
    state,
    lock: async () => void (await connect()),

    async check() {
      const db = await connect();
      const { rows } = await db.query<{ create: boolean; temp: boolean; encoding: string }>(
        `SELECT has_database_privilege(current_database(), 'CREATE') AS create, has_database_privilege(current_database(), 'TEMP') AS temp,
           current_setting('server_encoding') AS encoding`,
      );
      const { create, temp, encoding } = rows[0]!;
      if (!create || !temp)
        throw new CairnError(
          "unavailable",
          `The database user needs CREATE and TEMPORARY on ${database.where}. Grant them, then try again.`,
        );
      if (encoding !== "UTF8")
        throw new CairnError("unavailable", `${database.where} is encoded in ${encoding}. Create a database with ENCODING 'UTF8'.`);
      if (hasVectors) await ensurePgvector(database);
      await findCitus(database);
    },

    async fill(migrationId, feed) {
      const db = await connect();
      if (await isTombstone(db, schema)) await db.query(`DROP SCHEMA ${quoteName(schema)} CASCADE`);
      const pgvector = hasVectors ? await ensurePgvector(database) : undefined;
      // The schema is filled on the coordinator, and distributed with its rows. A schema that is on a worker cannot return.
      if (await isOnWorker(db, schema)) await transaction(db, where, () => dropUnused(db));
      const distributes = shape.kind === "project" && (await findCitus(database)) !== undefined;
      await ensureSchema(database, schema, definition, { typesIn: pgvector });
      trace("target made");
      await transaction(db, where, async () => {
        await db.query(`SET LOCAL cairn.migration = '${migrationId}'`);
        await db.query(LOCK_DEFINITION, [definitionLockName(schema)]);
        let tables = await tablesOf(db, schema);
        await db.query(`LOCK TABLE ${tables.map(quoteName).join(", ")} IN ACCESS EXCLUSIVE MODE`);
        if ((await state()) === "occupied") throw occupiedError(where);
        /** Fences the tables, and stops their triggers: the import writes what they would write. */
        const prepare = async () => {
          tables = await tablesOf(db, schema);
          await createFence(db, schema, { migrationId, role: "target" });
          for (const table of tables) await db.query(`ALTER TABLE ${quoteName(table)} DISABLE TRIGGER USER`);
        };
        await prepare();
        const ensureTable = async (name: string) => {
          if (tables.includes(name)) return;
          await createPartOf(db, { schema, definition, pgvector }, name);
          await prepare();
        };
        const stored = shape.tables.filter(({ name }) => tables.includes(name));
        await db.query(`TRUNCATE ${stored.map(({ name }) => quoteName(name)).join(", ")} CASCADE`);
        await unregister(db, schema);
        const staged = new Set<string>();
        const counters = await feed(async (table, rows) => {
          await ensureTable(table.name);
          await put(db, table, rows, staged);
          trace(`filled ${table.name}`);
        });
        if (tables.includes("embedding_records")) await db.query(FILL_MIRROR);
        for (const table of shape.tables) {
          const last = counters[table.name] ?? "0";
          if (!table.counter || (last === "0" && !tables.includes(table.name))) continue;
          await ensureTable(table.name); // its rows were deleted, and their numbers must not be used again
          await setCounter(db, table, last);
        }
        if (distributes) await db.query(DISTRIBUTE_SCHEMA, [schema]); // while the triggers are disabled: it copies the rows
        for (const table of tables) await db.query(`ALTER TABLE ${quoteName(table)} ENABLE TRIGGER USER`);
        if (pgvector) for (const sql of await vectorIndexes(db, pgvector)) await db.query(sql);
        trace("before the commit");
      });
      await holdWorkerLock(db);
      trace("target filled");
    },

    async *rows(table) {
      yield* postgresRows(await connect(), table);
    },

    async counters() {
      return postgresCounters(await connect(), schema, shape);
    },

    async problems() {
      const db = await connect();
      const found: string[] = [];
      for (const { name, fullText } of shape.tables) {
        if (!fullText || !(await hasTable(db, name))) continue;
        const { rows } = await db.query<{ count: string }>(`SELECT count(*) FROM ${quoteName(name)} WHERE terms IS NULL`);
        if (rows[0]!.count !== "0") found.push(`${rows[0]!.count} rows of ${name} are missing in the full-text index.`);
      }
      const { rows: disabled } = await db.query<{ name: string }>(
        `SELECT t.tgname AS name FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE n.nspname = $1 AND t.tgenabled = 'D'`,
        [schema],
      );
      for (const { name } of disabled) found.push(`The trigger ${name} is disabled.`);
      if (hasVectors) found.push(...(await missingIndexes(db, schema)));
      return found;
    },

    async open(migrationId) {
      const db = await connect();
      if ((await readFence(db, schema))?.migrationId !== migrationId) return; // already done before a crash
      await transaction(db, where, () => dropFence(db));
      trace("target opened");
      for (const { name } of shape.tables) if (await hasTable(db, name)) await db.query(`ANALYZE ${quoteName(name)}`);
    },

    async discard(migrationId) {
      const db = await connect();
      const fence = await readFence(db, schema);
      if (fence?.role === "target" && fence.migrationId === migrationId) await db.query(`DROP SCHEMA ${quoteName(schema)} CASCADE`);
      trace("discarded");
    },

    async close() {
      await workerLock?.end();
      await client?.end();
      client = workerLock = undefined;
      await database.close();
    },
  };
}

/** Returns the error for a target that contains data. */
export function occupiedError(where: string): CairnError {
  return new CairnError(
    "conflict",
    `${where} already contains data, and a migration never merges two databases. Choose another target, or rename the existing one. Nothing was changed.`,
  );
}

/** Creates the tables of the part that this table belongs to, and the parts that it needs, inside a transaction. */
async function createPartOf(
  db: pg.Client,
  { schema, definition, pgvector }: Pick<PostgresMigrationOptions, "schema" | "definition"> & { readonly pgvector: string | undefined },
  table: string,
): Promise<void> {
  const found = Object.entries(definition.parts ?? {}).find(([, { tables }]) => tables.includes(table));
  if (!found) throw new CairnError("internal", `The schema ${definition.name} has no table ${table}.`);
  const missing: string[] = [];
  for (const { sql, tables } of partsNeededBy(definition, found[0])) if (!(await hasTable(db, tables[0]!))) missing.push(sql);
  if (pgvector) await db.query(`SET LOCAL search_path TO ${quoteName(schema)}, ${pgvector}`);
  for (const sql of missing) await db.query(sql);
  await db.query(`SET LOCAL search_path TO ${quoteName(schema)}`);
}

/** Inserts rows by binary COPY. Rows with full text pass through a staging table, because only the server parses a tsvector. */
async function put(db: pg.Client, table: TableShape, rows: readonly Row[], staged: Set<string>): Promise<void> {
  const names = table.columns.map(({ name }) => quoteName(name)).join(", ");
  const { fullText } = table;
  if (!fullText) return copyIn(db, `COPY ${quoteName(table.name)} (${names}) FROM STDIN (FORMAT binary)`, encodeRows(table.columns, rows));
  const stage = quoteName(`cairn_stage_${table.name}`);
  if (!staged.has(table.name)) {
    await db.query(
      `CREATE TEMP TABLE ${stage} ON COMMIT DROP AS SELECT ${names}, ''::text AS cairn_terms FROM ${quoteName(table.name)} WHERE false`,
    );
    staged.add(table.name);
  }
  const named = namedValues(table);
  const bytes = encodeRows(table.columns, rows, (row) => tsvectorOf(recordTerms(fullText(named(row)))));
  await copyIn(db, `COPY ${stage} FROM STDIN (FORMAT binary)`, bytes);
  await db.query(
    `INSERT INTO ${quoteName(table.name)} (${names}, terms) OVERRIDING SYSTEM VALUE SELECT ${names}, cairn_terms::tsvector FROM ${stage}`,
  );
  await db.query(`TRUNCATE ${stage}`);
}

function copyIn(db: pg.Client, sql: string, rows: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    const stream = db.query(copyStreams.from(sql));
    stream.once("error", reject);
    stream.once("finish", resolve);
    stream.write(COPY_HEADER);
    stream.write(rows);
    stream.end(COPY_TRAILER);
  });
}

async function setCounter(db: pg.Client, { name, counter }: TableShape, last: string): Promise<void> {
  await db.query(
    `SELECT setval(pg_get_serial_sequence($1, $2)::regclass, greatest($3::bigint, m.last, 1), greatest($3::bigint, m.last) > 0)
       FROM (SELECT coalesce(max(${quoteName(counter!)}), 0) AS last FROM ${quoteName(name)}) AS m`,
    [quoteName(name), counter, last],
  );
}

async function versionsOf(db: pg.Client): Promise<{ version: number; dimension: number }[]> {
  if (!(await hasTable(db, "embedding_versions"))) return [];
  const { rows } = await db.query("SELECT version_id AS version, embedding_dimension AS dimension FROM embedding_versions ORDER BY 1");
  return rows;
}

async function vectorIndexes(db: pg.Client, pgvector: string): Promise<string[]> {
  return (await versionsOf(db)).flatMap(({ version, dimension }) => vectorIndexSql(pgvector, version, dimension) ?? []);
}

/** Returns the versions whose vectors lack a valid index. */
async function missingIndexes(db: pg.Client, schema: string): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    `SELECT c.relname AS name FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = $1 AND i.indisvalid AND i.indisready`,
    [schema],
  );
  const usable = new Set(rows.map(({ name }) => name));
  return (await versionsOf(db))
    .filter(({ version, dimension }) => indexedType("", dimension) && !usable.has(`vectors_hnsw_${version}`))
    .map(({ version }) => `The vectors of version ${version} have no index.`);
}
