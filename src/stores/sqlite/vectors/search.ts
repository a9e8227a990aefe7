import type { SqliteTx } from "../driver/driver.ts";
import { encodeQuery, segmentCapacity } from "./codes.ts";
import { assertDimension, cosineTo, strideOf } from "./collection.ts";
import { storedVectors } from "./rebuild.ts";
import { HEAP_AT, HEAP_MAX, QUERY_AT, type SegmentCache } from "./segment-cache.ts";
import { copyParts, DamagedCodes, loadSegment, type SegmentRef, segmentLayout } from "./segments.ts";
import { allSegments, type View } from "./view.ts";

export interface VectorHit {
  readonly key: number;
  /** The exact cosine of the angle between query and vector. */
  readonly score: number;
}

export interface Query {
  /** Of length one. */
  readonly vector: Float32Array;
  readonly limit: number;
  /** Only these keys, ascending and each once. */
  readonly allow?: Int32Array | undefined;
}

export interface SearchContext {
  readonly tx: SqliteTx;
  readonly cache: SegmentCache;
  /** Names the file in the cache. */
  readonly file: number;
  /** From this many vectors on, inverted lists are used if there are any. */
  readonly listsAbove: number;
}

/** Candidate vectors read per step before the search checks whether the ranking is settled. */
const READ_FIRST = 32;
const READ_NEXT = 12;
/** Up to this many allowed keys, the search compares the vectors themselves. */
const DIRECT_MAX = 256;
/** Lists are scanned as long as the candidate at this rank improves. Further down, some list always has a better one. */
const RANK_WATCHED = 25;
/** Lists scanned between two checks: a check costs as much as a scan of one list. */
const LISTS_AT_ONCE = 4;
/** Returns the vectors nearest to the query, best first; ties by key. */
export function searchView(context: SearchContext, view: View, query: Query): VectorHit[] {
  assertDimension(view, query.vector.length);
  const { allow, limit } = query;
  if (allow && allow.length <= DIRECT_MAX) return best(readScores(context.tx, view, query.vector, [...allow], false), limit);

  for (let wanted = Math.min(HEAP_MAX, 2 * limit + 12); ; wanted = Math.min(HEAP_MAX, wanted * 4)) {
    const candidates = scanView(context, view, query, wanted);
    const { top, settled } = bestOf(context.tx, view, query, candidates);
    if (settled || candidates.length < wanted || wanted === HEAP_MAX) return top;
  }
}

/**
 * Ranks the candidates by their vectors. Codes are rounded, so a candidate further down may belong among the best. The vectors read
 * show how much rounding changes a score; reading stops when no further candidate can be better. Not settled if a non-candidate can.
 */
function bestOf(
  tx: SqliteTx,
  view: View,
  { vector, limit }: Query,
  candidates: readonly VectorHit[],
): { top: VectorHit[]; settled: boolean } {
  const hits: VectorHit[] = [];
  let error = 0;
  while (hits.length < candidates.length) {
    const next = candidates.slice(hits.length, hits.length === 0 ? Math.max(READ_FIRST, limit + READ_NEXT) : hits.length + READ_NEXT);
    const read = readScores(
      tx,
      view,
      vector,
      next.map(({ key }) => key),
      true,
    );
    for (const [i, { score }] of next.entries()) error = Math.max(error, Math.abs(score - read[i]!.score));
    hits.push(...read);
    const top = best(hits, limit);
    const unread = candidates[hits.length] ?? candidates.at(-1)!;
    if (top.length === limit && top.at(-1)!.score >= unread.score + 1.5 * error) return { top, settled: true };
  }
  return { top: best(hits, limit), settled: false };
}

/** Returns the same result without codes, when they are damaged and cannot be rebuilt. */
export function searchVectors(tx: SqliteTx, view: Pick<View, "id" | "dimension">, { vector, limit, allow }: Query): VectorHit[] {
  const allowed = allow && new Set(allow);
  const hits: VectorHit[] = [];
  for (const { key, vector: stored } of storedVectors(tx, view)) {
    if (!stored || (allowed && !allowed.has(key))) continue;
    hits.push({ key, score: dot(vector, stored) });
    if (hits.length >= 4 * limit + 1000) hits.splice(0, hits.length, ...best(hits, limit));
  }
  return best(hits, limit);
}

/** Returns candidates by their codes, best first. */
function scanView(context: SearchContext, view: View, query: Query, wanted: number): VectorHit[] {
  const { kernel } = context.cache;
  const sets = fillSets(context.cache, view, query.allow);
  const stride = strideOf(view.dimension);
  const scale = encodeQuery(query.vector, new Int16Array(kernel.memory.buffer, QUERY_AT, stride));
  const lists = query.allow || view.codeCount < context.listsAbove ? [] : nearestLists(context, view, scale);
  kernel.begin(HEAP_AT, wanted);
  scanDelta(context, view, scale, sets);
  scanSegments(context, view, lists.length > 0 ? view.unlisted : allSegments(view), scale, sets);

  const rank = Math.min(query.limit, RANK_WATCHED);
  let bar = Number.NEGATIVE_INFINITY;
  for (let scanned = 0, waited = 0; scanned < lists.length && waited < view.probes; ) {
    const next = lists.slice(scanned, scanned + LISTS_AT_ONCE);
    for (const list of next) scanSegments(context, view, view.lists.get(list) ?? [], scale, sets);
    scanned += next.length;
    const reached = scoreAtRank(kernel, rank);
    waited = reached > bar ? 0 : waited + next.length;
    bar = reached;
  }
  return readRanking(kernel);
}

/** Returns the lists with the nearest centroids, nearest first; none if a full scan costs hardly more. */
function nearestLists(context: SearchContext, view: View, scale: number): number[] {
  if (view.centroids.length === 0 || view.probes > view.lists.size / 3) return [];
  const { kernel } = context.cache;
  kernel.begin(HEAP_AT, Math.min(HEAP_MAX, 8 * view.probes));
  scanSegments(context, view, view.centroids, scale, NO_SETS);
  return readRanking(kernel).map(({ key }) => key);
}

interface KeySets {
  readonly gone: number;
  /** -1 when no key is overridden. */
  readonly goneMask: number;
  readonly allowed: number;
  /** -1 when every key is allowed. */
  readonly allowedMask: number;
}

const NO_SETS: KeySets = { gone: 0, goneMask: -1, allowed: 0, allowedMask: -1 };

/** Writes the overridden keys and the allowed keys into the memory of the kernel. */
function fillSets({ kernel, reserve }: SegmentCache, { overridden }: View, allow: Int32Array = new Int32Array()): KeySets {
  const goneCells = cellsFor(overridden.length);
  const allowedCells = cellsFor(allow.length);
  const gone = reserve(4 * (goneCells + allowedCells + Math.max(overridden.length, allow.length)));
  const allowed = gone + 4 * goneCells;
  const keysAt = allowed + 4 * allowedCells;
  const fill = (set: number, cells: number, keys: Int32Array) => {
    if (cells === 0) return;
    new Int32Array(kernel.memory.buffer, keysAt, keys.length).set(keys);
    kernel.fillSet(set, cells - 1, keysAt, keys.length);
  };
  fill(gone, goneCells, overridden);
  fill(allowed, allowedCells, allow);
  return { gone, goneMask: goneCells - 1, allowed, allowedMask: allowedCells - 1 };
}

/** A set is at most half full; four cells keep what follows aligned. */
function cellsFor(keys: number): number {
  return keys === 0 ? 0 : Math.max(4, 2 ** Math.ceil(Math.log2(keys * 2)));
}

function scanSegments(context: SearchContext, view: View, segments: readonly SegmentRef[], scale: number, sets: KeySets): void {
  const { cache, tx, file } = context;
  for (const segment of segments) {
    const at = cache.frame(`${file}/${segment.id}`, 0, (to) => loadSegment(tx, segment, view.dimension, cache.kernel, to));
    scanFrame(context, view, at, segment.count, scale, sets);
  }
}

/** Scans the codes of delta rows as segments, which are built again after each change. */
function scanDelta(context: SearchContext, view: View, scale: number, sets: KeySets): void {
  const { cache, file } = context;
  const { live, dimension } = view;
  const capacity = segmentCapacity(dimension);
  for (let from = 0; from < live.length; from += capacity) {
    const count = Math.min(capacity, live.length - from);
    const at = cache.frame(`${file}/delta ${view.id} ${from}`, view.change, (to) => {
      const part = live.slice(from, from + count);
      const codes = new Uint8Array(count * strideOf(dimension));
      for (const [i, [, { code }]] of part.entries()) codes.set(code, i * code.length);
      const keys = Int32Array.from(part, ([key]) => key);
      const scales = Float32Array.from(part, ([, { scale }]) => scale);
      copyParts(cache.kernel, to, dimension, new Uint8Array(keys.buffer), new Uint8Array(scales.buffer), codes);
    });
    scanFrame(context, view, at, count, scale, { ...sets, goneMask: -1 });
  }
}

function scanFrame({ cache }: SearchContext, { dimension }: View, at: number, count: number, scale: number, sets: KeySets): void {
  const { kernel } = cache;
  const layout = segmentLayout(dimension);
  const [keys, scales, codes] = [at + layout.keys, at + layout.scales, at + layout.codes];
  const stride = strideOf(dimension);
  const { gone, goneMask, allowed, allowedMask } = sets;
  if (allowedMask < 0) kernel.scan(keys, scales, codes, count, stride, QUERY_AT, scale, gone, goneMask);
  else kernel.scanAllowed(keys, scales, codes, count, stride, QUERY_AT, scale, gone, goneMask, allowed, allowedMask);
}

/** Returns the ranking of the kernel, best first. */
function readRanking({ memory, size }: SegmentCache["kernel"]): VectorHit[] {
  const count = size();
  const scores = new Float32Array(memory.buffer, HEAP_AT, 2 * count);
  const keys = new Int32Array(memory.buffer, HEAP_AT, 2 * count);
  const hits = Array.from({ length: count }, (_, i) => ({ key: keys[2 * i + 1]!, score: scores[2 * i]! }));
  return best(hits, count);
}

/** Returns the score of the candidate at this rank, or -Infinity if there are fewer. */
function scoreAtRank({ memory, size }: SegmentCache["kernel"], rank: number): number {
  const count = size();
  if (count < rank) return Number.NEGATIVE_INFINITY;
  const pairs = new Float32Array(memory.buffer, HEAP_AT, 2 * count);
  const scores = new Float32Array(count);
  for (let i = 0; i < count; i++) scores[i] = pairs[2 * i]!;
  return scores.sort()[count - rank]!;
}

/** Returns exact scores from the stored vectors, in the order of the keys. */
function readScores(tx: SqliteTx, view: View, query: Float32Array, keys: readonly number[], mustExist: boolean): VectorHit[] {
  const rows = tx.all<{ key: number; vector: Uint8Array | null }>(
    `SELECT wanted.value AS key, v.vector FROM json_each(?) wanted LEFT JOIN vectors v ON v.collection_id = ? AND v.key = wanted.value`,
    JSON.stringify(keys),
    view.id,
  );
  const hits: VectorHit[] = [];
  for (const { key, vector } of rows) {
    const score = vector === null ? undefined : cosineTo(query, vector);
    if (score !== undefined) hits.push({ key, score });
    else if (vector || mustExist)
      throw new DamagedCodes(vector ? `The vector of key ${key} is damaged.` : `Key ${key} has a code but no vector.`);
  }
  return hits;
}

function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

function best(hits: readonly VectorHit[], limit: number): VectorHit[] {
  return hits.toSorted((a, b) => b.score - a.score || a.key - b.key).slice(0, limit);
}
