import { CairnError } from "../../../model/errors.ts";
import { type PostgresDatabase, quoteName } from "./driver.ts";

/** The schema in which this database has pgvector; made if it has none yet. Its names are written out, so that no search path can change their meaning. */
export async function ensurePgvector(database: PostgresDatabase): Promise<string> {
  const find = () =>
    database.read("pg_catalog", (tx) =>
      tx.get<{ schema: string; version: string }>(
        "SELECT n.nspname AS schema, e.extversion AS version FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'",
      ),
    );
  let found = await find();
  if (!found) {
    try {
      await database.write(
        "pg_catalog",
        async (tx) => {
          await tx.run("SELECT pg_advisory_xact_lock(hashtextextended('cairn pgvector', 0))");
          await tx.exec("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public");
        },
        { idempotent: true },
      );
    } catch (cause) {
      throw new CairnError(
        "unavailable",
        `${database.where} has no pgvector, and it could not be added. Install pgvector 0.8 or newer on the server and let an administrator run: CREATE EXTENSION vector`,
        { cause },
      );
    }
    found = await find();
  }
  const [major = 0, minor = 0] = found!.version.split(".").map(Number);
  if (major === 0 && minor < 8)
    throw new CairnError(
      "unavailable",
      `${database.where} has pgvector ${found!.version}; Cairn needs 0.8 or newer. Upgrade it, then run: ALTER EXTENSION vector UPDATE`,
    );
  return quoteName(found!.schema);
}

/** pgvector's HNSW takes `vector` up to 2,000 dimensions and `halfvec` up to 4,000; above that every search is exact. */
const VECTOR_MAX = 2_000;
const HALFVEC_MAX = 4_000;

/** The column as the index of a version sees it, or `undefined` where no index is possible. */
export function indexedType(schema: string, dimension: number): { readonly type: string; readonly ops: string } | undefined {
  if (dimension <= VECTOR_MAX) return { type: `${schema}.vector(${dimension})`, ops: `${schema}.vector_cosine_ops` };
  if (dimension <= HALFVEC_MAX) return { type: `${schema}.halfvec(${dimension})`, ops: `${schema}.halfvec_cosine_ops` };
  return undefined;
}

/** The index belongs to one version alone: another one has another dimension. Undefined where no index is possible. */
export function vectorIndexSql(schema: string, versionId: number, dimension: number): string | undefined {
  const indexed = indexedType(schema, dimension);
  return (
    indexed &&
    `CREATE INDEX vectors_hnsw_${versionId} ON vectors USING hnsw ((vector::${indexed.type}) ${indexed.ops}) WHERE version_id = ${versionId}`
  );
}

export function toPgvector(vector: Float32Array): string {
  return `[${vector.join(",")}]`;
}
