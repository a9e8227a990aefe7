import type { CandidateQuery, Candidates, RecallStore } from "../../ports/recall-store.ts";
import type { VectorOutbox } from "../../ports/vector-outbox.ts";
import type { QdrantClient } from "./client.ts";
import { nameOf } from "./sync.ts";

/** With more changes waiting than this, Qdrant is too far behind to be asked. */
const BEHIND_MAX = 500;
/** A filter goes to Qdrant as the records it lets through; with more than these the database filters faster. */
const AMONG_MAX = 10_000;

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
export function qdrantCandidates<RecordType, Filter>(
  store: RecallStore<RecordType, Filter>,
  { client, prefix, outbox, onBehind, pause }: QdrantSearch,
): (query: CandidateQuery<Filter>) => Promise<Candidates> {
  const byDatabase = async (query: CandidateQuery<Filter>, reason: string): Promise<Candidates> => ({
    ...(await store.candidates(query)),
    degraded: `${reason}, so the database searched its own vectors`,
  });

  return async (query) => {
    const { dense, filter, limit, signal } = query;
    const among = dense && (await store.matching?.(filter, AMONG_MAX));
    if (!dense || among === undefined || among === "many") return store.candidates(query);
    const paused = pause.reason();
    if (paused !== undefined) return byDatabase(query, paused);
    const changed = await outbox.pendingIds(dense.versionId, BEHIND_MAX + 1);
    if (changed.length > BEHIND_MAX) {
      onBehind();
      return byDatabase(query, "Qdrant is still being filled");
    }
    let near: readonly string[];
    try {
      const ids = among === "all" ? undefined : among;
      near = ids?.length === 0 ? [] : await client.query(nameOf({ prefix }, dense.versionId), dense.vector, limit, ids, signal);
    } catch (error) {
      signal?.throwIfAborted();
      onBehind();
      const reason = error instanceof Error ? error.message.replace(/\.$/, "") : String(error);
      pause.failed(reason);
      return byDatabase(query, reason);
    }
    const allowed = among === "all" ? undefined : new Set(among);
    const fresh = allowed ? changed.filter((id) => allowed.has(id)) : changed;
    const scores = await store.similarities(dense.versionId, dense.vector, [...new Set([...near, ...fresh])]);
    const { lexical } = await store.candidates({ ...query, dense: undefined });
    const ranked = [...scores].map(([id, score]) => ({ id, score })).sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1));
    return { lexical, dense: ranked.slice(0, limit) };
  };
}
