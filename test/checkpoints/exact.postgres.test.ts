import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { projectDatabaseName, systemClock } from "../../src/model/ids.ts";
import { postgresStorage } from "../../src/stores/postgres/storage.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { testEmbedder } from "../support/embedders.ts";
import { countsExactly, findsTheRare, MANY, RARE } from "./exact.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

it("a filter that leaves 3 of 100,000 records finds those 3, in semantic and keyword search", { timeout: 1_800_000 }, async () => {
  const projectPath = "/large";
  const embedder = testEmbedder({ dimension: 8 });
  const storage = postgresStorage({ url: database.url, now: systemClock });
  const { checkpoints } = await storage.create(projectPath);
  const { versionId } = await checkpoints.embeddings.addVersion(embedder);
  await fill(projectPath, versionId);
  await storage.close();
  await findsTheRare({ storage: database.url, embedder: [embedder] }, projectPath);
});

it("total is exact and of the same moment as the page while others write", () => countsExactly({ storage: database.url }));

/** As many puts would leave it, but by one statement; the index of the vectors is built afterwards, which takes a tenth of the time. */
async function fill(projectPath: string, versionId: number): Promise<void> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    const { rows } = await client.query(
      "SELECT n.nspname AS schema FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'",
    );
    await client.query(`SET search_path TO ${projectDatabaseName(projectPath)}, ${rows[0].schema}`);
    const index = `vectors_hnsw_${versionId}`;
    const { rows: indexes } = await client.query("SELECT indexdef FROM pg_indexes WHERE indexname = $1", [index]);
    expect(indexes).toHaveLength(1);
    await client.query(`DROP INDEX ${index}`);
    const rare = `n IN (${[...RARE].join(", ")})`;
    const tags = `CASE WHEN ${rare} THEN ARRAY['common', 'rare'] ELSE ARRAY['common'] END`;
    // As `checkpointChecksum` computes it.
    const time = `to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
    const framed = (part: string) => `octet_length(${part}) || ':' || ${part}`;
    const parts = ["'checkpoint'", "('id-' || n)", "('step ' || n)", "''", "'{}'", "'[]'", "''", "'1'", time, time, "'1'"]
      .map(framed)
      .join(" || ");
    const tagParts = `CASE WHEN ${rare} THEN '1:26:common4:rare' ELSE '1:16:common' END`;
    const checksum = `encode(sha256(convert_to(${parts} || ${tagParts}, 'UTF8')), 'hex')`;
    await client.query(
      `INSERT INTO checkpoints (id, summary, description, context, anchors, superseded_by, tags, folded_tags, token_count, pieces, created_at, updated_at, created_order, updated_order, revision, checksum, terms)
       SELECT 'id-' || n, 'step ' || n, '', '{}', '[]', '', ${tags}, ${tags}, 1, 1, at, at, at, at, 1, ${checksum}, to_tsvector('simple', 'step ' || n || ' common')
         FROM generate_series(0, ${MANY - 1}) AS n, LATERAL (SELECT timestamptz '2026-01-01T00:00:00Z' + n * interval '1 second' AS at) AS moment`,
    );
    await client.query(
      `INSERT INTO vectors (version_id, key, collection, vector)
       SELECT $1, 16 * key, 'checkpoints', l2_normalize(ARRAY[random(), random(), random(), random(), random(), random(), random(), random()]::vector)
         FROM checkpoints`,
      [versionId],
    );
    await client.query("SET maintenance_work_mem = '256MB'");
    await client.query(indexes[0].indexdef);
    await client.query("ANALYZE");
  } finally {
    await client.end();
  }
}
