import { randomUUID } from "node:crypto";
import { join } from "node:path";
import pg from "pg";
import { staticEmbedder } from "../../src/embedders/local/static.ts";
import { projectDatabaseName, systemClock } from "../../src/model/ids.ts";
import { checkpointChecksum, PIECES_MAX } from "../../src/model/stored-record.ts";
import { toPgvector } from "../../src/stores/postgres/driver/pgvector.ts";
import { checkpointTerms } from "../../src/stores/postgres/projects/checkpoints.ts";
import { postgresStorage } from "../../src/stores/postgres/storage.ts";
import { root } from "../frame.ts";
import { packageSentences } from "../vectors/texts.ts";

/** Records that one statement stores. */
const BATCH = 500;
/** Different sentences; further records repeat them with a number. */
const SENTENCES = 20_000;
let sentences: readonly string[] | undefined;

/**
 * Stores records `from` … `to` − 1 with the vectors of the static model, by SQL: one call per record would take most of an hour at
 * 100,000. The index of the vectors is built after them.
 */
export async function fillProject(url: string, projectPath: string, { from, to }: { from: number; to: number }): Promise<void> {
  sentences ??= packageSentences(join(root, "node_modules"), SENTENCES);
  const storage = postgresStorage({ url, now: systemClock, poolMax: 1 });
  const embedder = staticEmbedder();
  const client = new pg.Client({ connectionString: url });
  try {
    const { checkpoints } = await storage.create(projectPath);
    const { versionId } = await checkpoints.embeddings.addVersion(embedder);
    await client.connect();
    await client.query(`SET search_path TO ${projectDatabaseName(projectPath)}, public`);
    const indexes = await client.query<{ indexname: string; indexdef: string }>(
      "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = $1 AND indexdef LIKE '%USING hnsw%'",
      [projectDatabaseName(projectPath)],
    );
    for (const { indexname } of indexes.rows) await client.query(`DROP INDEX ${indexname}`);
    for (let start = from; start < to; start += BATCH) {
      const records = Array.from({ length: Math.min(BATCH, to - start) }, (_, offset) => recordAt(start + offset, projectPath));
      const vectors = await embedder.embed(records.map(({ summary }) => summary));
      await client.query(INSERT_SQL, [
        records.map(({ id }) => id),
        records.map(({ createdAt }) => createdAt),
        records.map(({ summary }) => summary),
        records.map(checkpointChecksum),
        records.map(checkpointTerms),
        vectors.map(toPgvector),
        versionId,
      ]);
    }
    for (const { indexdef } of indexes.rows) await client.query(indexdef);
    await client.query("ANALYZE checkpoints, vectors");
  } finally {
    await client.end();
    await embedder.close();
    await storage.close();
  }
}

const INSERT_SQL = `
  WITH given AS (
    SELECT * FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::text[]) AS given (id, at, summary, checksum, terms, vector)
  ), stored AS (
    INSERT INTO checkpoints (id, created_at, created_order, summary, description, context, anchors, superseded_by, tags, folded_tags,
                             token_count, pieces, updated_at, updated_order, revision, checksum, terms)
    SELECT id, at, at, summary, '', '{}', '[]', '', '{}', '{}', 20, 1, at, at, 1, checksum, terms::tsvector FROM given
    RETURNING id, key
  )
  INSERT INTO vectors (collection, version_id, key, vector)
  SELECT 'checkpoints', $7::int, stored.key * ${PIECES_MAX}, given.vector::vector FROM stored JOIN given USING (id)`;

function recordAt(position: number, projectPath: string) {
  const at = new Date(Date.UTC(2026, 0, 1) + position * 1_000).toISOString();
  const times = { createdAt: at, updatedAt: at, createdOrder: at, updatedOrder: at };
  const summary = `${sentences![position % sentences!.length]} ${position}`;
  return {
    ...{ id: randomUUID(), projectPath, summary, description: "", context: {}, tags: [], tokenCount: 20 },
    ...{ ...times, anchors: [], supersededBy: "", revision: 1 },
  };
}
