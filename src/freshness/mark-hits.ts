import type { Anchored } from "../model/anchor.ts";
import { LIMITS } from "../model/limits.ts";
import type { CheckedRecord } from "./check-index.ts";
import { orderByFreshness } from "./judge.ts";
import type { MarkRecords } from "./mark-records.ts";

interface MarkedHit {
  readonly score: number;
  readonly record: Anchored & CheckedRecord & { readonly outdated?: number | undefined };
}

export interface MarkHits<Hit> {
  /** Returns the project whose code the hit refers to, if any. */
  readonly projectOf: (hit: Hit) => string | undefined;
  readonly topK?: number | undefined;
  readonly freshOnly?: boolean | undefined;
}

const TOP_K = 5;
/** Hits that a search for fresh records reads for each one that it returns. */
const WIDER = 5;

/** Returns how many hits to search for, so that enough of them remain. */
export function searchedTopK({
  topK = TOP_K,
  freshOnly,
}: {
  readonly topK?: number | undefined;
  readonly freshOnly?: boolean | undefined;
}): number {
  return freshOnly ? Math.min(LIMITS.listMax, topK * WIDER) : topK;
}

/** Marks hits, orders them by their freshness and, if asked, keeps only fresh ones. */
export async function markHits<Hit extends MarkedHit>(
  mark: MarkRecords,
  hits: readonly Hit[],
  { projectOf, topK = TOP_K, freshOnly }: MarkHits<Hit>,
): Promise<Hit[]> {
  const marked = new Map<Hit, Hit>();
  for (const project of new Set(hits.map(projectOf))) {
    const own = hits.filter((hit) => projectOf(hit) === project);
    const records = await mark(
      project,
      own.map(({ record }) => record),
    );
    for (const [index, hit] of own.entries()) marked.set(hit, { ...hit, record: records[index] });
  }
  return chooseHits(
    hits.map((hit) => marked.get(hit)!),
    { recordOf: ({ record }) => record, scoreOf: ({ score }) => score },
    { topK, freshOnly },
  );
}

/** Orders marked hits by their freshness and, if asked, keeps only fresh ones. */
export function chooseHits<Hit>(
  hits: readonly Hit[],
  { recordOf, scoreOf }: { readonly recordOf: (hit: Hit) => MarkedHit["record"]; readonly scoreOf: (hit: Hit) => number },
  { topK = TOP_K, freshOnly }: { readonly topK?: number | undefined; readonly freshOnly?: boolean | undefined },
): Hit[] {
  const ordered = orderByFreshness(hits, recordOf, scoreOf);
  return (freshOnly ? ordered.filter((hit) => recordOf(hit).freshness?.state === "fresh") : ordered).slice(0, topK);
}
