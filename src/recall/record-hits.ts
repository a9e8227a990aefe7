import { newestFirst } from "../model/record-order.ts";
import type { RecordStore } from "../ports/recall-store.ts";
import {
  type Candidate,
  codeShare,
  fuse,
  neighbourShare,
  recencyWeight,
  recordWeight,
  secondOpinion,
  shortness,
  wantsSecondOpinion,
} from "./fuse.ts";
import type { Found, Ranking, RescoredHits } from "./search.ts";

export interface Hit<RecordType> {
  readonly record: RecordType;
  /** Cosine, clamped to 0…1; 0 where the record has no vector yet. Hits are ordered by the fused score, which is not returned. */
  readonly score: number;
  readonly found: Found;
}

export interface ReadHits<RecordType> {
  readonly topK: number;
  readonly textOf: (record: RecordType) => string;
  /** Returns whether two records with neighbouring keys belong together. Absent: the order of the records means nothing. */
  readonly belong?: ((a: RecordType, b: RecordType) => boolean) | undefined;
  /** Returns the ids of the newest records that pass the filter, newest first. Absent: recency means nothing. */
  readonly newest?: (() => Promise<readonly string[]>) | undefined;
}

/** Records whose texts decide the weight, and records that are ranked by their texts and neighbours. */
const SAMPLED = 10;
const POOL = 20;
/** The part of the newest record's recency that the next older one has. */
const RECENCY_DECAY = 0.8;

/**
 * Ranks the candidates by weights that follow from the query and the texts, and reads the best `topK`. A single ranking keeps its
 * order. Of equal scores the newer record comes first.
 */
export async function readRecordHits<RecordType extends { readonly id: string; readonly createdOrder: string }>(
  store: Pick<RecordStore<RecordType, never>, "getMany">,
  ranking: Pick<Ranking<unknown>, "query" | "order" | "candidates" | "fused" | "signals" | "cosine" | "found" | "secondCosines">,
  { topK, textOf, belong, newest }: ReadHits<RecordType>,
): Promise<RescoredHits<Hit<RecordType>>> {
  const records = new Map<string, RecordType>();
  const damaged: NonNullable<RescoredHits<unknown>["damaged"]>[number][] = [];
  const asked = new Set<string>();
  const read = async (ids: readonly string[]) => {
    const missing = ids.filter((id) => !asked.has(id));
    for (const id of missing) asked.add(id);
    if (missing.length === 0) return;
    const found = await store.getMany(missing);
    for (const record of found.records) records.set(record.id, record);
    damaged.push(...found.damaged);
  };
  const texts = (ids: readonly string[]) => ids.flatMap((id) => (records.has(id) ? [textOf(records.get(id)!)] : []));
  const hitsOf = (scored: readonly { readonly id: string; readonly score: number }[]) =>
    scored
      .flatMap(({ id, score }) => (records.has(id) ? [{ record: records.get(id)!, fused: score }] : []))
      .sort((a, b) => b.fused - a.fused || newestFirst(listPosition(a.record), listPosition(b.record)))
      .slice(0, topK)
      .map(({ record }) => ({
        record,
        score: Math.min(1, Math.max(0, ranking.cosine(record.id) ?? 0)),
        found: ranking.found(record.id),
      }));

  const recency = ranking.fused && newest ? recencyWeight(ranking.query) : 0;
  const recentIds = newest && recency > 0 ? await newest() : [];
  if (!ranking.fused) {
    await read(idsOf(ranking.order, topK * 2));
    return { hits: hitsOf(ranking.order), damaged };
  }

  const known = new Set(ranking.candidates.map(({ id }) => id));
  const candidates: readonly Candidate[] = [...ranking.candidates, ...recentIds.filter((id) => !known.has(id)).map((id) => ({ id }))];
  const sample = idsOf(fuse(candidates, recordWeight({ ...ranking.signals, codeShare: 0 })), SAMPLED);
  await read(sample);
  const sampled = texts(sample);
  const signals = { ...ranking.signals, codeShare: mean(sampled.map(codeShare)) };
  const weight = recordWeight(signals);
  const order = idsOf(fuse(candidates, weight), Math.max(POOL, topK * 2));
  const best = order.slice(0, SAMPLED);
  const adjacent = belong ? adjacentIds(candidates) : () => [];
  const observed = mean(best.map((id) => (adjacent(id).length > 0 ? 1 : 0)));
  const share =
    observed > 0 ? neighbourShare({ observed, candidates: candidates.length, records: keyRange(candidates) }, signals.codeShare) : 0;
  // The answer often follows the record that has the words of the question, and has none of them itself.
  const pool = new Set([...order, ...(share > 0 ? best.flatMap(adjacent) : []), ...recentIds]);
  await read([...pool]);

  const penalised = candidates.map((candidate) => {
    const record = pool.has(candidate.id) ? records.get(candidate.id) : undefined;
    return record ? { ...candidate, penalty: shortness(textOf(record)) } : candidate;
  });
  const scores = new Map(
    fuse(penalised, weight).flatMap(({ id, score }) => (records.has(id) && pool.has(id) ? [[id, score] as const] : [])),
  );
  const belonging = new Map(
    [...scores.keys()].map((id) => [
      id,
      adjacent(id).filter((other) => scores.has(other) && belong?.(records.get(id)!, records.get(other)!) === true),
    ]),
  );
  const doubted = wantsSecondOpinion(signals.codeShare) ? order.slice(0, POOL).filter((id) => records.has(id)) : [];
  const cosines = doubted.length > 1 ? await ranking.secondCosines?.(texts(doubted)) : undefined;
  const points = new Map(secondOpinion(cosines ?? [], signals.codeShare).map((value, index) => [doubted[index]!, value]));
  const places = new Map(recentIds.map((id, index) => [id, recency * RECENCY_DECAY ** index]));
  const rescored = [...scores].map(([id, score]) => ({
    id,
    score:
      score + share * Math.max(0, ...belonging.get(id)!.map((other) => scores.get(other)!)) + (places.get(id) ?? 0) + (points.get(id) ?? 0),
  }));
  const neighbours = [...belonging.values()].some((others) => others.length > 0) ? share : 0;
  return { hits: hitsOf(rescored), damaged, weights: { ...signals, semantic: weight, neighbours, recent: recency > 0 } };
}

/** Returns a function from a candidate to the candidates before and after it in the order of insertion. */
function adjacentIds(candidates: readonly Candidate[]): (id: string) => string[] {
  const keys = new Map(candidates.map(({ id, key }) => [id, key]));
  const byKey = new Map(candidates.map(({ id, key }) => [key, id]));
  return (id) => {
    const key = keys.get(id);
    return key === undefined ? [] : [byKey.get(key - 1), byKey.get(key + 1)].flatMap((other) => other ?? []);
  };
}

/** Returns about how many records there are, from the keys of the candidates. */
function keyRange(candidates: readonly Candidate[]): number {
  const keys = candidates.flatMap(({ key }) => key ?? []);
  return keys.length === 0 ? 0 : Math.max(...keys) - Math.min(...keys) + 1;
}

const idsOf = (ranked: readonly { readonly id: string }[], count: number) => ranked.slice(0, count).map(({ id }) => id);
const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);

/** Returns where a record stands in a list by creation time. */
export function listPosition({ id, createdOrder }: { readonly id: string; readonly createdOrder: string }): { id: string; at: string } {
  return { id, at: createdOrder };
}
