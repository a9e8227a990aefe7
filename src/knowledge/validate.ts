import type { KnowledgeStore } from "../ports/knowledge-store.ts";
import { readRecordHits } from "../recall/record-hits.ts";
import { type SearchDeps, searchRecords } from "../recall/search.ts";
import { recordText } from "./search.ts";

/** A question and the id of the record that answers it. */
export interface LabelledQuery {
  readonly query: string;
  readonly id: string;
}

/** Shares of the questions whose record was the first hit, among the first three and among the first five. */
export interface Validation {
  readonly questions: number;
  readonly top1: number;
  readonly top3: number;
  readonly top5: number;
  /** Questions whose record was not the first hit, up to a limit. */
  readonly missed: readonly { readonly query: string; readonly expected: string; readonly first?: string | undefined }[];
}

const MISSED_SHOWN = 20;

/** Hits read per question, as many as `top5` needs. */
const TOP_K = 5;

export async function validateSearch(
  deps: SearchDeps,
  collection: { readonly database: string; readonly store: KnowledgeStore } | undefined,
  labelled: readonly LabelledQuery[],
  signal: AbortSignal | undefined,
): Promise<Validation> {
  const ranks: number[] = [];
  const missed: { query: string; expected: string; first?: string | undefined }[] = [];
  for (const { query, id } of labelled) {
    signal?.throwIfAborted();
    const hits = collection ? await search(deps, collection, query, signal) : [];
    const rank = hits.findIndex(({ record }) => record.id === id);
    ranks.push(rank === -1 ? Number.POSITIVE_INFINITY : rank);
    if (rank !== 0 && missed.length < MISSED_SHOWN) missed.push({ query, expected: id, first: hits[0]?.record.id });
  }
  const within = (count: number) => ranks.filter((rank) => rank < count).length / Math.max(1, ranks.length);
  return { questions: labelled.length, top1: within(1), top3: within(3), top5: within(5), missed };
}

async function search(
  deps: SearchDeps,
  { database, store }: { readonly database: string; readonly store: KnowledgeStore },
  query: string,
  signal: AbortSignal | undefined,
) {
  const { hits } = await searchRecords(deps, {
    ...{ collection: "knowledge", database, store, query, filter: {}, topK: TOP_K, signal },
    rescoreAndRead: (ranking) => readRecordHits(store, ranking, { topK: TOP_K, textOf: recordText }),
  });
  return hits;
}
