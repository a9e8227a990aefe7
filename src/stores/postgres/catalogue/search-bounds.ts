import { projectDatabaseName } from "../../../model/ids.ts";
import { PIECES_MAX } from "../../../model/stored-record.ts";
import type { BoundQuery, SearchBound } from "../../../ports/catalogue.ts";
import { MARKED_LANGUAGES, queryTerms } from "../../../text/terms.ts";
import type { PgValue, PostgresDatabase } from "../driver/driver.ts";
import { toPgvector } from "../driver/pgvector.ts";
import { whereOf } from "../projects/checkpoints.ts";
import { quoteLexeme } from "../projects/full-text.ts";
import { selectFromSchemas, tableIn } from "./schemas.ts";

interface BoundRow {
  readonly schema: string;
  readonly newest: string | null;
  readonly matched: boolean;
  readonly model: string | null;
  readonly version: string | null;
  readonly dimension: number | null;
  readonly cosine: number | null;
}

/**
 * Returns bounds of a search of checkpoints in these projects. One statement answers for many of them. Schemas that could not be read
 * have no bound, and the caller searches them.
 */
export async function findSearchBounds(database: PostgresDatabase, pgvector: string, query: BoundQuery): Promise<readonly SearchBound[]> {
  const paths = new Map(query.projectPaths.map((path) => [projectDatabaseName(path), path]));
  const params: PgValue[] = [];
  const bind = (value: PgValue, type: string) => `$${params.push(value)}::${type}`;
  const filter = whereOf(query.filter, 1);
  params.push(...(filter?.params ?? []));
  const condition = filter?.sql ?? "true";
  // Forms of all languages: a superset of the terms that the search of one project asks for.
  const words = query.text === undefined ? [] : queryTerms(query.text, MARKED_LANGUAGES).flat();
  const terms = words.length === 0 ? undefined : bind(words.map(quoteLexeme).join(" | "), "tsquery");
  const { space, vector } = query.semantic ?? {};
  const semanticParams = vector && {
    vector: bind(toPgvector(vector), `${pgvector}.vector`),
    model: bind(space!.model, "text"),
    version: bind(space!.version, "text"),
    dimension: bind(space!.dimension, "int"),
  };
  const wanted = semanticParams && {
    distance: `v.vector OPERATOR(${pgvector}.<=>) ${semanticParams.vector}`,
    is: `e.model_name = ${semanticParams.model} AND e.model_version = ${semanticParams.version} AND e.embedding_dimension = ${semanticParams.dimension}`,
  };
  const { rows } = await selectFromSchemas<BoundRow>(database, {
    schemas: [...paths.keys()],
    tables: ["checkpoints", "embedding_versions"],
    params,
    optionalParams: Object.values(semanticParams ?? {}),
    select(schema, has) {
      if (!has("checkpoints")) return undefined;
      const checkpoints = tableIn(schema, "checkpoints");
      const newest = `(SELECT max(r.created_order) FROM ${checkpoints} r WHERE ${condition}) AS newest`;
      const matched = terms ? `EXISTS (SELECT 1 FROM ${checkpoints} r WHERE r.terms @@ ${terms} AND ${condition})` : "false";
      const start = `SELECT '${schema}' AS schema, ${newest}, ${matched} AS matched`;
      if (!has("embedding_versions"))
        return `${start}, NULL::text AS model, NULL::text AS version, NULL::int AS dimension, NULL::float8 AS cosine`;
      const joined = filter ? `JOIN ${checkpoints} r ON r.key = v.key / ${PIECES_MAX} AND ${condition}` : "";
      const best = `(SELECT max(1 - (${wanted?.distance})) FROM ${tableIn(schema, "vectors")} v ${joined} WHERE v.version_id = e.version_id)`;
      return `${start}, e.model_name AS model, e.model_version AS version, e.embedding_dimension AS dimension,
        ${wanted ? `CASE WHEN ${wanted.is} THEN ${best} END` : "NULL::float8"} AS cosine
        FROM (SELECT) AS one LEFT JOIN ${tableIn(schema, "embedding_versions")} e ON e.collection = 'checkpoints' AND e.is_current`;
    },
  });
  return rows.map(({ schema, newest, matched, model, version, dimension, cosine }) => ({
    projectPath: paths.get(schema)!,
    newestAt: newest ?? undefined,
    hasMatch: matched,
    ...(model !== null && { space: { model, version: version!, dimension: dimension! } }),
    cosine: cosine ?? undefined,
  }));
}
