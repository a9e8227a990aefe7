import type { Embedders } from "../ports/embedders.ts";
import type { KnowledgeStore } from "../ports/knowledge-store.ts";
import { recall } from "../recall/search.ts";

/** A question and the id of the record that answers it. */
export interface LabelledQuery {
  readonly query: string;
  readonly id: string;
}

/** How often the right record came first, among the first three and among the first five: shares of all questions. */
export interface Validation {
  readonly questions: number;
  readonly top1: number;
  readonly top3: number;
  readonly top5: number;
  /** Some of the questions whose record did not come first. */
  readonly missed: readonly { readonly query: string; readonly expected: string; readonly first?: string | undefined }[];
}

const MISSED_SHOWN = 20;

export async function validateSearch(
  store: KnowledgeStore | undefined,
  embedders: Embedders,
  labelled: readonly LabelledQuery[],
  signal: AbortSignal | undefined,
): Promise<Validation> {
  const places: number[] = [];
  const missed: { query: string; expected: string; first?: string | undefined }[] = [];
  for (const { query, id } of labelled) {
    signal?.throwIfAborted();
    const { hits } = store ? await recall(store, embedders, { query, topK: 5, filter: {}, signal }) : { hits: [] };
    const place = hits.findIndex(({ record }) => record.id === id);
    places.push(place === -1 ? Number.POSITIVE_INFINITY : place);
    if (place !== 0 && missed.length < MISSED_SHOWN) missed.push({ query, expected: id, first: hits[0]?.record.id });
  }
  const within = (count: number) => places.filter((place) => place < count).length / Math.max(1, places.length);
  return { questions: labelled.length, top1: within(1), top3: within(3), top5: within(5), missed };
}
