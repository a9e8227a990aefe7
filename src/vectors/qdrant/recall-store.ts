import { PIECES_MAX } from "../../model/stored-record.ts";
import type { CandidateQuery, Candidates, RecallStore } from "../../ports/recall-store.ts";
import type { VectorOutbox } from "../../ports/vector-outbox.ts";
import type { QdrantClient } from "./client.ts";
import { nameOf } from "./sync.ts";

/** Pending changes above which Qdrant is too far behind to be queried. */
const BEHIND_MAX = 500;
/** Records that pass a filter, up to which they are sent to Qdrant. Above, the database filters faster. */
const AMONG_MAX = 10_000;

/** Queries of a collection that changes meanwhile, after which the database answers from one snapshot. */
const ROUNDS_MAX = 4;

export interface QdrantSearch {
  readonly client: QdrantClient;
  readonly prefix: string;
  readonly outbox: VectorOutbox;
  /** Called when Qdrant is behind or lacks points. */
  readonly onBehind: () => void;
  /** Returns why Qdrant is not queried now, and records failures. */
  readonly pause: { reason(): string | undefined; failed(reason: string): void };
}

/**
 * Returns semantic candidates from Qdrant; everything else, scores included, comes from the database. The database ranks changes that
 * Qdrant does not have yet, so a search finds records that were just saved. Without Qdrant the database answers, and reports it.
 */
export function qdrantCandidates<Filter>(
  store: RecallStore<Filter>,
  { client, prefix, outbox, onBehind, pause }: QdrantSearch,
): (query: CandidateQuery<Filter>) => Promise<Candidates> {
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
    const changed = await outbox.pendingIds(versionId, BEHIND_MAX + 1);
    if (changed.length > BEHIND_MAX) {
      onBehind();
      return { answer: "database", because: "Qdrant is still being filled" };
    }
    let near: readonly string[];
    try {
      near =
        among.length === 0
          ? []
          : await nearestRecords(limit, (wanted) =>
              client.query(nameOf({ prefix }, versionId), vector, wanted, among === "all" ? undefined : among, signal),
            );
    } catch (error) {
      signal?.throwIfAborted();
      onBehind();
      const because = error instanceof Error ? error.message.replace(/\.$/, "") : String(error);
      pause.failed(because);
      return { answer: "database", because };
    }
    const allowed = among === "all" ? undefined : new Set(among);
    const asked = new Set([...near, ...changed.filter((id) => !allowed || allowed.has(id))]);
    const scores = await store.similarities(versionId, vector, [...asked]);
    // Points of deleted records displaced others, which only the database can find.
    if (near.length >= limit && near.some((id) => !scores.has(id))) return { answer: "database" };
    return { answer: "scores", scores, gone: [...asked].filter((id) => !scores.has(id)).join() };
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

/** Returns the records of the nearest points, best first. A long record has a point per piece, so several points may be one record. */
async function nearestRecords(limit: number, query: (wanted: number) => Promise<readonly string[]>): Promise<readonly string[]> {
  for (let wanted = limit; ; wanted = Math.min(PIECES_MAX * limit, 4 * wanted)) {
    const points = await query(wanted);
    const records = [...new Set(points)];
    if (records.length >= limit || points.length < wanted || wanted >= PIECES_MAX * limit) return records.slice(0, limit);
  }
}

type QueryVector = NonNullable<CandidateQuery<unknown>["semantic"]>;

type QueryOutcome =
  | { readonly answer: "scores"; readonly scores: ReadonlyMap<string, number>; readonly gone: string }
  | { readonly answer: "database"; readonly because?: string };
