import type { SqliteTx } from "../driver/driver.ts";

/** The records that have a term, and how often each of them has it. */
export interface Postings {
  readonly keys: Int32Array;
  readonly counts: Int32Array;
}

/**
 * Reads the postings of each term from the blocks of a full-text index of one column. The BM25 of FTS5 looks up each record in the tables of
 * the index and takes many times as long. The blocks have the layout of SQLite's file format. Returns undefined for a layout that is not
 * known; the caller then asks FTS5.
 */
export function readPostings(tx: SqliteTx, table: string, terms: readonly string[]): Postings[] | undefined {
  const version = tx.get<{ v: number }>(`SELECT v FROM ${table}_config WHERE k = 'version'`)?.v;
  const structure = tx.get<{ block: Uint8Array }>(`SELECT block FROM ${table}_data WHERE id = 10`)?.block;
  if (version === undefined || !LAYOUT_VERSIONS.includes(version) || !structure) return undefined;
  const segments = readSegments(structure).map((segment) => ({ segment, removed: readTombstones(tx, table, segment) }));
  const postings: Postings[] = [];
  for (const term of terms) {
    const lists: (SegmentPostings & { readonly removed: ReadonlySet<number> | undefined })[] = [];
    for (const { segment, removed } of segments) {
      const list = readCached(tx, table, segment, term);
      if (!list) return undefined;
      if (list.keys.length > 0) lists.push({ ...list, removed });
    }
    postings.push(joinPostings(lists));
  }
  return postings;
}

/** The postings of one segment. */
interface SegmentPostings extends Postings {
  /** Keys whose entries in older segments are out of date. */
  readonly replaced: readonly number[];
}

/** Joins the postings of all segments, the newest first, without removed and replaced records. */
function joinPostings(lists: readonly (SegmentPostings & { readonly removed: ReadonlySet<number> | undefined })[]): Postings {
  const [only] = lists;
  if (only && lists.length === 1 && !only.removed && only.replaced.length === 0) return only;
  const size = lists.reduce((sum, { keys }) => sum + keys.length, 0);
  const joined = { keys: new Int32Array(size), counts: new Int32Array(size) };
  const replaced = new Set<number>();
  let at = 0;
  for (const { keys, counts, removed, replaced: replacedHere } of lists) {
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i]!;
      if (counts[i] === 0 || removed?.has(key) || (replaced.size > 0 && replaced.has(key))) continue;
      joined.keys[at] = key;
      joined.counts[at++] = counts[i]!;
    }
    for (const key of replacedHere) replaced.add(key);
  }
  return { keys: joined.keys.subarray(0, at), counts: joined.counts.subarray(0, at) };
}

/** Bytes of postings that are cached, of all indexes together: those of the common terms, which take longest to read. */
const CACHE_BYTES = 16 * 1024 * 1024;
const ENTRY_BYTES = 200;
const cache = new Map<string, SegmentPostings>(); // in order of last use
let cachedBytes = 0;
const connections = new WeakMap<SqliteTx, number>();
let connectionCount = 0;

/** Returns the postings of a term in one segment, from the cache if the segment cannot have changed. Undefined if its blocks are damaged. */
function readCached(tx: SqliteTx, table: string, segment: IndexSegment, term: string): SegmentPostings | undefined {
  const read = () => readDoclist(tx, table, segment, new TextEncoder().encode(MAIN_INDEX + term));
  if (segment.identity === undefined) return read();
  const connection = connections.get(tx) ?? ++connectionCount;
  connections.set(tx, connection);
  const name = `${connection} ${table} ${segment.identity} ${term}`;
  const known = cache.get(name);
  if (known) {
    cache.delete(name);
    cache.set(name, known);
    return known;
  }
  const postings = read();
  if (!postings) return undefined;
  cache.set(name, postings);
  cachedBytes += sizeOf(postings);
  for (const [oldest, held] of cache) {
    if (cachedBytes <= CACHE_BYTES) break;
    cache.delete(oldest);
    cachedBytes -= sizeOf(held);
  }
  return postings;
}

function sizeOf({ keys }: Postings): number {
  return ENTRY_BYTES + 8 * keys.length;
}

/** The layouts without and with secure deletion, which differ only in what a page may lack. */
const LAYOUT_VERSIONS: readonly number[] = [4, 5];
/** The first character of every term in the index of whole terms. */
const MAIN_INDEX = "0";
/** Follows the cookie in the structure of an index that allows deletions without content. */
const HAS_TOMBSTONES = [0xff, 0, 0, 1] as const;
/** The id of a block is the id of its segment, shifted by this number of bits, plus the number of the page. */
const PAGE_BITS = 37;
/** Added to the id of a segment in the ids of the pages that list its removed records. */
const TOMBSTONE_SEGMENT = 65_536;
/** Pages read at a time, at first and at most: most terms end on their first page, a common one takes dozens. */
const PAGES_FIRST = 1;
const PAGES_MAX = 32;
const HEADER_BYTES = 4;

interface IndexSegment {
  readonly id: number;
  readonly firstPage: number;
  readonly lastPage: number;
  readonly tombstonePages: number;
  /** Differs from that of every other segment with other content; absent where secure deletion changes segments. */
  readonly identity?: string;
}

/** Returns the segments, the newest first. */
function readSegments(block: Uint8Array): IndexSegment[] {
  const hasTombstones = HAS_TOMBSTONES.every((byte, index) => block[4 + index] === byte);
  const numbers = readVarints(block, hasTombstones ? 8 : 4);
  let at = 0;
  const next = () => numbers[at++] ?? 0;
  const levels = next();
  at += 2; // the number of all segments, the counter of writes
  const segments: IndexSegment[] = [];
  for (let level = 0; level < levels; level++) {
    at += 1; // segments of this level that are being merged
    const oldestFirst = Array.from({ length: next() }, () => {
      const [id, firstPage, lastPage] = [next(), next(), next()];
      if (!hasTombstones) return { id, firstPage, lastPage, tombstonePages: 0 };
      const [firstCommit, lastCommit] = [next(), next()];
      const tombstonePages = next();
      at += 1; // the number of tombstones
      const identity = [id, firstPage, lastPage, firstCommit, lastCommit, next()].join(" ");
      return { id, firstPage, lastPage, tombstonePages, identity };
    });
    segments.push(...oldestFirst.reverse());
  }
  return segments.filter(({ firstPage }) => firstPage > 0); // a merge has consumed the others
}

/** Returns the keys of removed records that a segment still contains. */
function readTombstones(tx: SqliteTx, table: string, { id, tombstonePages }: IndexSegment): ReadonlySet<number> | undefined {
  if (tombstonePages === 0) return undefined;
  const keys = new Set<number>();
  const pages = tx.all<{ block: Uint8Array }>(
    `SELECT block FROM ${table}_data WHERE id BETWEEN (?1 << ${PAGE_BITS}) AND (?1 << ${PAGE_BITS}) + ?2`,
    id + TOMBSTONE_SEGMENT,
    tombstonePages - 1,
  );
  for (const { block } of pages) {
    const view = new DataView(block.buffer, block.byteOffset, block.byteLength);
    const size = block[0] === 4 ? 4 : 8;
    for (let at = 8; at + size <= block.byteLength; at += size) {
      const key = size === 4 ? view.getUint32(at) : Number(view.getBigUint64(at));
      if (key !== 0) keys.add(key);
    }
  }
  return keys;
}

/** Reads the postings of a term in one segment. Returns undefined if the blocks are not as expected. */
function readDoclist(tx: SqliteTx, table: string, segment: IndexSegment, term: Uint8Array): SegmentPostings | undefined {
  const list = new PostingList();
  const entry = tx.get<{ pgno: number }>(
    `SELECT pgno FROM ${table}_idx WHERE segid = ? AND term <= ? ORDER BY term DESC LIMIT 1`,
    segment.id,
    term,
  );
  const base = segment.id * 2 ** PAGE_BITS;
  let found = false;
  let count = PAGES_FIRST;
  for (let page = Math.max(segment.firstPage, (entry?.pgno ?? 0) >> 1); page <= segment.lastPage; page += count, count = PAGES_MAX) {
    const last = Math.min(segment.lastPage, page + count - 1);
    const blocks = tx.all<{ block: Uint8Array }>(`SELECT block FROM ${table}_data WHERE id BETWEEN ? AND ?`, base + page, base + last);
    if (blocks.length < last - page + 1) return undefined;
    for (const { block } of blocks) {
      const range = found ? continuation(block) : findTerm(block, term);
      if (!range) return list.take();
      found = true;
      if (!list.add(block, range.from, range.to)) return undefined;
      if (!range.open) return list.take();
    }
  }
  return list.take();
}

interface Range {
  readonly from: number;
  readonly to: number;
  /** Whether the list may continue on the next page. */
  readonly open: boolean;
}

/** Returns the part of a page that continues the list of the page before. */
function continuation(block: Uint8Array): Range {
  const end = leafEnd(block);
  const [firstTerm = end] = readVarints(block, end, 1);
  return { from: HEADER_BYTES, to: firstTerm, open: firstTerm === end };
}

/** Returns the list of a term on the page where the term is, or undefined if the page does not have it. */
function findTerm(block: Uint8Array, term: Uint8Array): Range | undefined {
  const end = leafEnd(block);
  const offsets = readVarints(block, end);
  const name = new Uint8Array(block.byteLength);
  for (let index = 0, start = 0; index < offsets.length; index++) {
    start += offsets[index]!;
    let at = start;
    let value = 0;
    const next = () => {
      value = block[at]! & 127;
      while (block[at++]! > 127) value = (value << 7) | (block[at]! & 127);
      return value;
    };
    const shared = index === 0 ? 0 : next();
    const added = next();
    name.set(block.subarray(at, at + added), shared);
    at += added;
    if (shared + added !== term.length || term.some((byte, place) => name[place] !== byte)) continue;
    const following = offsets[index + 1];
    return { from: at, to: following === undefined ? end : start + following, open: following === undefined };
  }
  return undefined;
}

/** Returns the end of a page's content: the offsets of its terms follow. */
function leafEnd(block: Uint8Array): number {
  return (block[2]! << 8) | block[3]!;
}

/** Returns the numbers of seven bits per byte from an offset on. */
export function readVarints(block: Uint8Array, from: number, limit = Number.POSITIVE_INFINITY): number[] {
  const numbers: number[] = [];
  for (let at = from, value = 0; at < block.length && numbers.length < limit; at++) {
    value = value * 128 + (block[at]! & 127);
    if (block[at]! > 127) continue;
    numbers.push(value);
    value = 0;
  }
  return numbers;
}

/**
 * Decodes a list of records. A record is its key, the size of its positions and the positions, which may continue on the next page. The lowest
 * bit of the size says that entries of older segments are out of date.
 */
class PostingList {
  #keys = new Int32Array(64);
  #counts = new Int32Array(64);
  #size = 0;
  /** Bytes of the current record's positions that are still to come. */
  #left = 0;
  readonly #replaced: number[] = [];

  /** Returns the postings, or undefined if the last record is not complete. */
  take(): SegmentPostings | undefined {
    if (this.#left > 0) return undefined;
    return { keys: this.#keys.slice(0, this.#size), counts: this.#counts.slice(0, this.#size), replaced: this.#replaced };
  }

  /** Adds the records in this part of a page. Its first key is absolute, the others are differences. Returns false if it is damaged. */
  add(block: Uint8Array, from: number, to: number): boolean {
    let at = this.#addPositions(block, from, to);
    let key = 0;
    while (at < to) {
      let value = block[at]! & 127;
      while (block[at++]! > 127) value = (value << 7) | (block[at]! & 127);
      key += value;
      let size = block[at]! & 127;
      while (block[at++]! > 127) size = (size << 7) | (block[at]! & 127);
      if (key <= 0 || at > to) return false;
      this.#addRecord(key, size);
      at = this.#addPositions(block, at, to);
    }
    return at === to;
  }

  #addRecord(key: number, size: number): void {
    this.#left = size >> 1;
    if (size & 1) this.#replaced.push(key);
    if (this.#size === this.#keys.length) {
      this.#keys = enlarge(this.#keys);
      this.#counts = enlarge(this.#counts);
    }
    this.#keys[this.#size++] = key;
  }

  /** Counts the positions of the current record on this page, and returns the offset after them. */
  #addPositions(block: Uint8Array, from: number, to: number): number {
    const end = Math.min(to, from + this.#left);
    this.#left -= end - from;
    let count = 0;
    for (let at = from; at < end; at++) if (block[at]! < 128) count++;
    if (count > 0) this.#counts[this.#size - 1]! += count;
    return end;
  }
}

function enlarge(array: Int32Array): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(array.length * 2);
  larger.set(array);
  return larger;
}
