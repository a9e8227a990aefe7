import { PIECES_MAX } from "../../model/stored-record.ts";
import type { CandidateQuery, Candidates, RecallStore } from "../../ports/recall-store.ts";
import type { QdrantClient, TenantPoints } from "./client.ts";
import { reasonOf } from "./health.ts";
import { statusOf } from "./request.ts";
import type { Comparison, Mirrored } from "./sync.ts";
import { collectionName, tenantBase, tenantName } from "./tenant.ts";

/** Pending changes above which Qdrant is too far behind to be queried. */
const BEHIND_MAX = 500;
/** Records that pass a filter, up to which they are sent to Qdrant. Above, the database filters faster. */
const AMONG_MAX = 10_000;

/** Queries of a collection that changes meanwhile, after which the database answers from one snapshot. */
const ROUNDS_MAX = 4;

export interface QdrantSearch {
  readonly client: QdrantClient;
  readonly mirrored: Mirrored;
  /** Called when Qdrant is behind or lacks points. */
  readonly onBehind: (comparison: Comparison) => void;
  /** Returns why Qdrant is not queried now, and records failures. */
  readonly pause: { reason(): string | undefined; failed(error: unknown): void };
}

/**
 * Returns semantic candidates from Qdrant; everything else, scores included, comes from the database. The database ranks changes that
 * Qdrant does not have yet, so a search finds records that were just saved. Without Qdrant the database answers, and reports it.
 */
export function qdrantCandidates<Filter>(
  store: RecallStore<Filter>,
  { client, mirrored, onBehind, pause }: QdrantSearch,
): (query: CandidateQuery<Filter>) => Promise<Candidates> {
  const { outbox } = mirrored;
  const locate = pointsOfVersion(mirrored);
  const byDatabase = async (query: CandidateQuery<Filter>, reason: string): Promise<Candidates> => ({
    ...(await store.candidates(query)),
    degraded: `${reason}, so the database searched its own vectors`,
  });

  /** Queries Qdrant and the outbox, and scores their ids in the database. The steps do not share a snapshot. */
  async function queryOnce(
    { filter, limit: wordsLimit, semanticLimit: limit = wordsLimit, signal }: CandidateQuery<Filter>,
    { versionId, vector }: QueryVector,
  ): Promise<QueryOutcome> {
    const among = await store.matching?.(filter, AMONG_MAX);
    if (among === undefined || among === "many") return { answer: "database" };
    const at = await locate(versionId);
    const changed = await outbox.pendingIds(versionId, BEHIND_MAX + 1);
    if (changed.length > BEHIND_MAX) {
      onBehind("none");
      return { answer: "database", because: "Qdrant is still being filled" };
    }
    let near: Nearest;
    try {
      near =
        among.length === 0
          ? { records: [], points: undefined }
          : await nearestRecords(limit, (wanted) => client.query(at, vector, wanted, among === "all" ? undefined : among, signal));
    } catch (error) {
      signal?.throwIfAborted();
      pause.failed(error);
      onBehind(statusOf(error) === 404 ? "count" : "none"); // 404: the collection is gone, and the outbox may be empty
      return { answer: "database", because: reasonOf(error) };
    }
    const allowed = among === "all" ? undefined : new Set(among);
    const known = new Set([...near.records, ...changed]);
    if (near.points !== undefined && (await lacksPoints(versionId, near.points, changed.length, among, known))) {
      onBehind("count");
      return { answer: "database" };
    }
    const asked = [...known].filter((id) => !allowed || allowed.has(id));
    const scores = await store.similarities(versionId, vector, asked);
    // Points of deleted records displaced others, which only the database can find.
    if (near.records.length >= limit && near.records.some((id) => !scores.has(id))) return { answer: "database" };
    return { answer: "scores", scores, gone: asked.filter((id) => !scores.has(id)).join() };
  }

  /** Returns whether the database has vectors that Qdrant has not, where Qdrant returned all its points. */
  async function lacksPoints(
    versionId: number,
    points: number,
    changed: number,
    among: "all" | readonly string[],
    known: ReadonlySet<string>,
  ): Promise<boolean> {
    if (among !== "all") return among.some((id) => !known.has(id));
    const atMost = points + changed * PIECES_MAX;
    return (await outbox.keys(versionId, -1, atMost + 1)).length > atMost;
  }

  return async (query) => {
    const { semantic, limit: wordsLimit, semanticLimit: limit = wordsLimit } = query;
    if (!semantic) return store.candidates(query);
    const paused = pause.reason();
    if (paused !== undefined) return byDatabase(query, paused);
    for (let round = 1, before = ""; round <= ROUNDS_MAX; round++) {
      const seen = await queryOnce(query, semantic);
      if (seen.answer === "database") return seen.because === undefined ? store.candidates(query) : byDatabase(query, seen.because);
      // A missing record may have been replaced between two steps. If the same ones are missing twice, they were deleted.
      if (seen.gone !== before) {
        before = seen.gone;
        continue;
      }
      const { keyword } = await store.candidates({ ...query, semantic: undefined });
      const ranked = [...seen.scores].map(([id, score]) => ({ id, score })).sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1));
      return { keyword, semantic: ranked.slice(0, limit) };
    }
    return store.candidates(query);
  };
}

/** Finds the tenant of a version. The name is read each time: the project may have been deleted and created again by another process. */
function pointsOfVersion({ projectPath, collection, embeddings, outbox }: Mirrored): (versionId: number) => Promise<TenantPoints> {
  const collections = new Map<string, string>();
  return async (versionId) => {
    const tenant = tenantName(tenantBase(projectPath, await outbox.enable(), collection), versionId);
    if (!collections.has(tenant)) {
      const version = (await embeddings.versions()).find((one) => one.versionId === versionId);
      if (version) collections.set(tenant, collectionName(version));
    }
    return { tenant, collection: collections.get(tenant) ?? "" };
  };
}

interface Nearest {
  readonly records: readonly string[];
  /** The number of all matching points, where there were fewer than wanted. */
  readonly points: number | undefined;
}

/** Returns the records of the nearest points, best first. A long record has a point per piece, so several points may be one record. */
async function nearestRecords(limit: number, query: (wanted: number) => Promise<readonly string[]>): Promise<Nearest> {
  for (let wanted = limit; ; wanted = Math.min(PIECES_MAX * limit, 4 * wanted)) {
    const points = await query(wanted);
    const records = [...new Set(points)];
    const all = points.length < wanted;
    if (records.length >= limit || all || wanted >= PIECES_MAX * limit)
      return { records: records.slice(0, limit), points: all && records.length < limit ? points.length : undefined };
  }
}

type QueryVector = NonNullable<CandidateQuery<unknown>["semantic"]>;

type QueryOutcome =
  | { readonly answer: "scores"; readonly scores: ReadonlyMap<string, number>; readonly gone: string }
  | { readonly answer: "database"; readonly because?: string };
