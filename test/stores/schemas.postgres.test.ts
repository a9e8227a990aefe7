import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { threadSchema as threadsOnPostgres } from "../../src/adapters/langgraph/postgres-schema.ts";
import { threadSchema as threadsOnSqlite } from "../../src/adapters/langgraph/sqlite-schema.ts";
import { PROJECT_SHAPE, RUNS_SHAPE, SYSTEM_SHAPE, THREADS_SHAPE } from "../../src/migrate/shapes.ts";
import { openPostgres, type PostgresDatabase } from "../../src/stores/postgres/driver/driver.ts";
import { ensurePgvector } from "../../src/stores/postgres/driver/pgvector.ts";
import { ensurePart, ensureSchema } from "../../src/stores/postgres/driver/schema-version.ts";
import { projectSchema as projectOnPostgres } from "../../src/stores/postgres/projects/project-schema.ts";
import { runSchema as runsOnPostgres } from "../../src/stores/postgres/runs/schema.ts";
import { systemSchema as systemOnPostgres } from "../../src/stores/postgres/systems/schema.ts";
import { codeSchema } from "../../src/stores/sqlite/projects/code/schema.ts";
import { projectSchema as projectOnSqlite } from "../../src/stores/sqlite/projects/project-schema.ts";
import { runSchema as runsOnSqlite } from "../../src/stores/sqlite/runs/schema.ts";
import { systemSchema as systemOnSqlite } from "../../src/stores/sqlite/systems/schema.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { type ComparedSchemas, compareSchemas, type IntendedDifferences } from "./compare-schemas.ts";
import { type Catalog, type CatalogColumn, migrationCatalog, postgresCatalog, sqliteCatalog } from "./schema-catalog.ts";

const only = (engine: "SQLite" | "PostgreSQL", reason: string, ...names: readonly string[]): IntendedDifferences =>
  Object.fromEntries(names.map((name) => [name, { only: engine, reason }]));

/** All intended differences between the engines. */
const INTENDED: Readonly<Record<string, IntendedDifferences>> = {
  project: {
    ...only("SQLite", "PostgreSQL stores tags as arrays with a GIN index", "checkpoint_tags"),
    ...only("PostgreSQL", "SQLite stores tags as rows", "checkpoints.tags", "checkpoints.folded_tags"),
    ...only("PostgreSQL", "SQLite has FTS5 tables instead", "checkpoints.terms", "knowledge.terms", "code_chunks.terms"),
    ...only(
      "PostgreSQL",
      "FTS5 stores the lengths of texts itself",
      "checkpoints.term_count",
      "knowledge.term_count",
      "code_chunks.term_count",
    ),
    ...only("SQLite", "pgvector indexes vectors itself", "vector_collections", "vector_delta", "vector_segments", "vector_segment_bodies"),
    ...only("SQLite", "names collection and version by one integer, which makes rows smaller", "vectors.collection_id"),
    ...only("PostgreSQL", "has both columns in place of the integer", "vectors.collection", "vectors.version_id"),
    ...only("PostgreSQL", "SQLite commits in the order of the sequence", "events.transaction"),
  },
  runs: {
    ...only("PostgreSQL", "SQLite commits in the order of the sequence", "events.transaction"),
    ...only("SQLite", "stores columns that are read together as one JSON array", "checkpoints.envelope"),
    ...only(
      "PostgreSQL",
      "stores the fields of the envelope as columns",
      ...["version", "next_node", "previous_node", "attempt", "step", "kind", "note", "size", "encoding"].map(
        (name) => `checkpoints.${name}`,
      ),
    ),
  },
  threads: {},
  system: only("SQLite", "measures when a system has outgrown a file", "write_activity"),
};

let database: TestDatabase;
let storage: PostgresDatabase;
let client: pg.Client;
const compared = new Map<string, ComparedSchemas>();

beforeAll(async () => {
  database = await testDatabase();
  storage = openPostgres({ url: database.url, poolMax: 1 });
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
  const kinds = [
    { shape: PROJECT_SHAPE, sqlite: [projectOnSqlite, codeSchema], postgres: projectOnPostgres, typesIn: await ensurePgvector(storage) },
    { shape: RUNS_SHAPE, sqlite: [runsOnSqlite], postgres: runsOnPostgres },
    { shape: THREADS_SHAPE, sqlite: [threadsOnSqlite], postgres: threadsOnPostgres },
    { shape: SYSTEM_SHAPE, sqlite: [systemOnSqlite], postgres: systemOnPostgres },
  ];
  for (const { shape, sqlite, postgres, typesIn } of kinds) {
    await ensureSchema(storage, `of_${shape.kind}`, postgres, { typesIn });
    for (const part of Object.keys(postgres.parts ?? {})) await ensurePart(storage, `of_${shape.kind}`, postgres, part, { typesIn });
    compared.set(shape.kind, {
      sqlite: await sqliteCatalog(...sqlite),
      postgres: await postgresCatalog(client, `of_${shape.kind}`),
      migration: migrationCatalog(shape),
      derived: shape.derived,
      intended: INTENDED[shape.kind]!,
    });
  }
});
afterAll(async () => {
  await client.end();
  await storage.close();
  await database.drop();
});

describe("the SQLite schema, the PostgreSQL schema and the migration", () => {
  it.each(["project", "runs", "threads", "system"])("agree on tables, columns and types of a %s database", (kind) => {
    const schemas = compared.get(kind)!;
    expect(schemas.sqlite.size).toBeGreaterThan(1);
    expect(schemas.postgres.size).toBeGreaterThan(1);
    expect(compareSchemas(schemas)).toEqual([]);
  });

  it("create exactly the tables that each part of a project's schema names", async () => {
    const { parts } = projectOnPostgres;
    const tablesIn = async (schema: string) => new Set((await postgresCatalog(client, schema)).keys());
    for (const [name, part] of Object.entries(parts)) {
      const schema = `only_${name}`;
      await ensureSchema(storage, schema, projectOnPostgres, { typesIn: await ensurePgvector(storage) });
      const base = await tablesIn(schema);
      await ensurePart(storage, schema, projectOnPostgres, name, { typesIn: await ensurePgvector(storage) });
      const needed = (part.needs ?? []).flatMap((other) => parts[other as keyof typeof parts]!.tables);
      const added = [...(await tablesIn(schema))].filter((table) => !base.has(table));
      expect(added.sort(), name).toEqual([...part.tables, ...needed].sort());
    }
  });

  it("disagree when one of them alone gets a column, or another type", () => {
    const runs = compared.get("runs")!;
    const check = (change: Partial<ComparedSchemas>) => compareSchemas({ ...runs, ...change });
    expect(check({ sqlite: withColumn(runs.sqlite, "TEXT") })).toEqual(["runs.added exists only in SQLite"]);
    expect(check({ postgres: withColumn(runs.postgres, "text") })).toEqual([
      "runs.added exists only in PostgreSQL",
      "the migration does not copy runs.added",
    ]);
    expect(check({ migration: withColumn(runs.migration, "text") })).toEqual([
      "the migration copies runs.added, which PostgreSQL does not have",
    ]);
    const both = { sqlite: withColumn(runs.sqlite, "TEXT"), postgres: withColumn(runs.postgres, "int8") };
    expect(check({ ...both, migration: withColumn(runs.migration, "int4") })).toEqual([
      "runs.added is TEXT in SQLite and int8 in PostgreSQL",
      "the migration copies runs.added as int4, and PostgreSQL stores int8",
    ]);
    expect(check({ sqlite: withTable(runs.sqlite, "more", new Map()) })).toEqual([
      "more exists only in SQLite",
      "more is neither copied by the migration nor derived",
    ]);
    expect(check({ intended: { ...runs.intended, ...only("SQLite", "gone", "runs.gone") } })).toEqual([
      "runs.gone is listed as a difference and is none",
    ]);
  });
});

function withColumn(catalog: Catalog, type: string): Catalog {
  return withTable(catalog, "runs", new Map([...catalog.get("runs")!, ["added", { type, nullable: false }]]));
}

function withTable(catalog: Catalog, name: string, columns: ReadonlyMap<string, CatalogColumn>): Catalog {
  return new Map<string, ReadonlyMap<string, CatalogColumn>>([...catalog, [name, columns]]);
}
