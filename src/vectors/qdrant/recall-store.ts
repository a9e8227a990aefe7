import type { CandidateQuery, Candidates, RecallStore } from "../../ports/recall-store.ts";
import type { VectorOutbox } from "../../ports/vector-outbox.ts";
import type { QdrantClient } from "./client.ts";
import { nameOf } from "./sync.ts";

/** With more changes waiting than this, Qdrant is too far behind to be asked. */
const BEHIND_MAX = 500;
/** A filter goes to Qdrant as the records it lets through; with more than these the database filters faster. */
const AMONG_MAX = 10_000;

/** Against a collection that changes faster than it can be asked, the database answers from one snapshot. */
const ROUNDS_MAX = 4;

export interface QdrantSearch {
  readonly client: QdrantClient;
  readonly prefix: string;
  readonly outbox: VectorOutbox;
  /** Told that Qdrant is behind or lacks something. */
  readonly onBehind: () => void;
  /** Why Qdrant is not to be asked now. */
  readonly pause: { reason(): string | undefined; failed(reason: string): void };
}

/**
 * Candidates by meaning from Qdrant; everything else, the scores included, from the database. Changes that Qdrant does not have yet
 * are compared by the database, so a search finds what was saved a moment ago. Without Qdrant the database does it all, and says so.
 */
export function qdrantCandidates<Filter>(
  store: RecallStore<Filter>,
  { client, prefix, outbox, onBehind, pause }: QdrantSearch,
): (query: CandidateQuery<Filter>) => Promise<Candidates> {
  const byDatabase = async (query: CandidateQuery<Filter>, reason: string): Promise<Candidates> => ({
    ...(await store.candidates(query)),
    degraded: `${reason}, so the database searched its own vectors`,
  });

  /** One look: what Qdrant and the outbox name, and which of it the database knows. Several steps, and so not of one moment. */
  async function look(
    { filter, limit: wordsLimit, semanticLimit: limit = wordsLimit, signal }: CandidateQuery<Filter>,
    { versionId, vector }: QueryVector,
  ): Promise<Look> {
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
          : await client.query(nameOf({ prefix }, versionId), vector, limit, among === "all" ? undefined : among, signal);
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
    // Points of records that are gone took the places of others, which only the database can name.
    if (near.length >= limit && near.some((id) => !scores.has(id))) return { answer: "database" };
    return { answer: "scores", scores, gone: [...asked].filter((id) => !scores.has(id)).join() };
  }

  return async (query) => {
    const { semantic, limit: wordsLimit, semanticLimit: limit = wordsLimit } = query;
    if (!semantic) return store.candidates(query);
    const paused = pause.reason();
    if (paused !== undefined) return byDatabase(query, paused);
    for (let round = 1, before = ""; round <= ROUNDS_MAX; round++) {
      const seen = await look(query, semantic);
      if (seen.answer === "database") return seen.because === undefined ? store.candidates(query) : byDatabase(query, seen.because);
      // Records that are gone by now may have been replaced between two steps. Once the same ones are missing twice, none was.
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

type QueryVector = NonNullable<CandidateQuery<unknown>["semantic"]>;

type Look =
  | { readonly answer: "scores"; readonly scores: ReadonlyMap<string, number>; readonly gone: string }
  | { readonly answer: "database"; readonly because?: string };
