// The inner loops of vector search, in AssemblyScript (a TypeScript-like language for WebAssembly).
// Built by scripts/build-kernel.mjs into dist/kernel/scan.wasm; called through kernel.ts, which also lays out the memory.
// Nothing here allocates: every pointer is given by the caller, and every block starts on a 16-byte boundary.

// ---- The best candidates so far: a min-heap of (score, key), the worst one on top -----------------------------------
// It lives at `heap` as pairs of 4 bytes. Among equal scores the smaller key is the better one, so that answers are
// the same whatever order the segments are read in.

let heap: usize = 0;
let heapLimit: i32 = 0;
let heapSize: i32 = 0;

/** Starts a new ranking of at most `limit` candidates, kept at `at` (8 bytes each). */
export function begin(at: usize, limit: i32): void {
  heap = at;
  heapLimit = limit;
  heapSize = 0;
}

/** How many candidates there are now. */
export function size(): i32 {
  return heapSize;
}

// @ts-ignore: decorator
@inline
function worse(scoreA: f32, keyA: i32, scoreB: f32, keyB: i32): bool {
  return scoreA < scoreB || (scoreA == scoreB && keyA > keyB);
}

// @ts-ignore: decorator
@inline
function scoreAt(i: i32): f32 {
  return load<f32>(heap + ((<usize>i) << 3));
}

// @ts-ignore: decorator
@inline
function keyAt(i: i32): i32 {
  return load<i32>(heap + ((<usize>i) << 3), 4);
}

// @ts-ignore: decorator
@inline
function place(i: i32, score: f32, key: i32): void {
  store<f32>(heap + ((<usize>i) << 3), score);
  store<i32>(heap + ((<usize>i) << 3), key, 4);
}

function offer(score: f32, key: i32): void {
  let i: i32;
  if (heapSize < heapLimit) {
    i = heapSize++;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!worse(score, key, scoreAt(parent), keyAt(parent))) break;
      place(i, scoreAt(parent), keyAt(parent));
      i = parent;
    }
  } else {
    if (!worse(scoreAt(0), keyAt(0), score, key)) return;
    i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heapSize) break;
      if (child + 1 < heapSize && worse(scoreAt(child + 1), keyAt(child + 1), scoreAt(child), keyAt(child))) child++;
      if (!worse(scoreAt(child), keyAt(child), score, key)) break;
      place(i, scoreAt(child), keyAt(child));
      i = child;
    }
  }
  place(i, score, key);
}

/** The score that a new candidate must exceed; any score while the heap is not full. */
// @ts-ignore: decorator
@inline
function threshold(): f32 {
  return heapSize < heapLimit ? -f32.MAX_VALUE : scoreAt(0);
}

// ---- Sets of keys: open addressing, a power of two of 4-byte cells, an empty cell holds EMPTY ------------------------

const EMPTY: i32 = i32.MIN_VALUE;

// @ts-ignore: decorator
@inline
function cellOf(key: i32, mask: i32): i32 {
  // Fibonacci hashing: the high bits of the product are the well mixed ones.
  return <i32>((<u32>key * 0x9e3779b1) >>> clz<u32>(mask));
}

/** Makes the set at `set` (of `mask` + 1 cells) hold exactly the `count` keys at `keys`. */
export function fillSet(set: usize, mask: i32, keys: usize, count: i32): void {
  for (let i: i32 = 0; i <= mask; i++) store<i32>(set + ((<usize>i) << 2), EMPTY);
  for (let i: i32 = 0; i < count; i++) {
    const key = load<i32>(keys + ((<usize>i) << 2));
    let cell = cellOf(key, mask);
    for (;;) {
      const held = load<i32>(set + ((<usize>cell) << 2));
      if (held == EMPTY) {
        store<i32>(set + ((<usize>cell) << 2), key);
        break;
      }
      if (held == key) break;
      cell = (cell + 1) & mask;
    }
  }
}

// @ts-ignore: decorator
@inline
function inSet(set: usize, mask: i32, key: i32): bool {
  let cell = cellOf(key, mask);
  let held = load<i32>(set + ((<usize>cell) << 2));
  while (held != key && held != EMPTY) {
    cell = (cell + 1) & mask;
    held = load<i32>(set + ((<usize>cell) << 2));
  }
  return held == key;
}

// ---- Products of int8 codes with an int16 query ------------------------------------------------------------------------

// @ts-ignore: decorator
@inline
function sum(v: v128): i32 {
  return (
    i32x4.extract_lane(v, 0) + i32x4.extract_lane(v, 1) + i32x4.extract_lane(v, 2) + i32x4.extract_lane(v, 3)
  );
}

// @ts-ignore: decorator
@inline
function dot(code: usize, query: usize, stride: usize): i32 {
  let low = i32x4.splat(0);
  let high = i32x4.splat(0);
  for (let d: usize = 0; d < stride; d += 16) {
    const q = query + (d << 1);
    low = i32x4.add(low, i32x4.dot_i16x8_s(v128.load8x8_s(code + d), v128.load(q)));
    high = i32x4.add(high, i32x4.dot_i16x8_s(v128.load8x8_s(code + d, 8), v128.load(q, 16)));
  }
  return sum(i32x4.add(low, high));
}

/**
 * Ranks the `count` codes of a segment against the query. `stride` is the bytes of one code, a multiple of 32.
 * A code scores `product × its scale × queryScale`. Keys in the set `gone` (if `goneMask` >= 0) are passed over.
 */
export function scan(
  keys: usize, scales: usize, codes: usize, count: i32, stride: usize,
  query: usize, queryScale: f32, gone: usize, goneMask: i32,
): void {
  let bar = threshold();
  let i: i32 = 0;
  // Four codes at a time share each load of the query.
  for (; i + 4 <= count; i += 4) {
    const c0 = codes + (<usize>i) * stride;
    const c1 = c0 + stride;
    const c2 = c1 + stride;
    const c3 = c2 + stride;
    let s0 = i32x4.splat(0);
    let s1 = i32x4.splat(0);
    let s2 = i32x4.splat(0);
    let s3 = i32x4.splat(0);
    let q = query;
    for (let d: usize = 0; d < stride; d += 32, q += 64) {
      const a0 = c0 + d;
      const a1 = c1 + d;
      const a2 = c2 + d;
      const a3 = c3 + d;
      const q0 = v128.load(q);
      s0 = i32x4.add(s0, i32x4.dot_i16x8_s(v128.load8x8_s(a0), q0));
      s1 = i32x4.add(s1, i32x4.dot_i16x8_s(v128.load8x8_s(a1), q0));
      s2 = i32x4.add(s2, i32x4.dot_i16x8_s(v128.load8x8_s(a2), q0));
      s3 = i32x4.add(s3, i32x4.dot_i16x8_s(v128.load8x8_s(a3), q0));
      const q1 = v128.load(q, 16);
      s0 = i32x4.add(s0, i32x4.dot_i16x8_s(v128.load8x8_s(a0, 8), q1));
      s1 = i32x4.add(s1, i32x4.dot_i16x8_s(v128.load8x8_s(a1, 8), q1));
      s2 = i32x4.add(s2, i32x4.dot_i16x8_s(v128.load8x8_s(a2, 8), q1));
      s3 = i32x4.add(s3, i32x4.dot_i16x8_s(v128.load8x8_s(a3, 8), q1));
      const q2 = v128.load(q, 32);
      s0 = i32x4.add(s0, i32x4.dot_i16x8_s(v128.load8x8_s(a0, 16), q2));
      s1 = i32x4.add(s1, i32x4.dot_i16x8_s(v128.load8x8_s(a1, 16), q2));
      s2 = i32x4.add(s2, i32x4.dot_i16x8_s(v128.load8x8_s(a2, 16), q2));
      s3 = i32x4.add(s3, i32x4.dot_i16x8_s(v128.load8x8_s(a3, 16), q2));
      const q3 = v128.load(q, 48);
      s0 = i32x4.add(s0, i32x4.dot_i16x8_s(v128.load8x8_s(a0, 24), q3));
      s1 = i32x4.add(s1, i32x4.dot_i16x8_s(v128.load8x8_s(a1, 24), q3));
      s2 = i32x4.add(s2, i32x4.dot_i16x8_s(v128.load8x8_s(a2, 24), q3));
      s3 = i32x4.add(s3, i32x4.dot_i16x8_s(v128.load8x8_s(a3, 24), q3));
    }
    // Sums across lanes of all four at once: transpose by shuffles, then add.
    const t0 = i32x4.add(
      v128.shuffle<i32>(s0, s1, 0, 4, 1, 5),
      v128.shuffle<i32>(s0, s1, 2, 6, 3, 7),
    );
    const t1 = i32x4.add(
      v128.shuffle<i32>(s2, s3, 0, 4, 1, 5),
      v128.shuffle<i32>(s2, s3, 2, 6, 3, 7),
    );
    const products = i32x4.add(
      v128.shuffle<i32>(t0, t1, 0, 1, 4, 5),
      v128.shuffle<i32>(t0, t1, 2, 3, 6, 7),
    );
    const scores = f32x4.mul(
      f32x4.mul(f32x4.convert_i32x4_s(products), v128.load(scales + ((<usize>i) << 2))),
      f32x4.splat(queryScale),
    );
    if (v128.any_true(f32x4.ge(scores, f32x4.splat(bar)))) {
      offerLive(f32x4.extract_lane(scores, 0), keys + ((<usize>i) << 2), gone, goneMask);
      offerLive(f32x4.extract_lane(scores, 1), keys + ((<usize>(i + 1)) << 2), gone, goneMask);
      offerLive(f32x4.extract_lane(scores, 2), keys + ((<usize>(i + 2)) << 2), gone, goneMask);
      offerLive(f32x4.extract_lane(scores, 3), keys + ((<usize>(i + 3)) << 2), gone, goneMask);
      bar = threshold();
    }
  }
  for (; i < count; i++) {
    const product = dot(codes + (<usize>i) * stride, query, stride);
    const score = <f32>product * load<f32>(scales + ((<usize>i) << 2)) * queryScale;
    offerLive(score, keys + ((<usize>i) << 2), gone, goneMask);
  }
}

function offerLive(score: f32, keyAddress: usize, gone: usize, goneMask: i32): void {
  if (score < threshold()) return;
  const key = load<i32>(keyAddress);
  if (goneMask >= 0 && inSet(gone, goneMask, key)) return;
  offer(score, key);
}

/** As `scan`, but only codes whose key is in the set `allowed` are looked at. */
export function scanAllowed(
  keys: usize, scales: usize, codes: usize, count: i32, stride: usize,
  query: usize, queryScale: f32, gone: usize, goneMask: i32, allowed: usize, allowedMask: i32,
): void {
  for (let i: i32 = 0; i < count; i++) {
    const keyAddress = keys + ((<usize>i) << 2);
    if (!inSet(allowed, allowedMask, load<i32>(keyAddress))) continue;
    const product = dot(codes + (<usize>i) * stride, query, stride);
    const score = <f32>product * load<f32>(scales + ((<usize>i) << 2)) * queryScale;
    offerLive(score, keyAddress, gone, goneMask);
  }
}

/**
 * For each of the `count` codes, the key of the best of the centroids (a segment as `scan` takes it), written to `nearest`
 * (4 bytes each). `scratch` has room for one code widened to int16, after 16 bytes of its own.
 */
export function assign(
  codes: usize, count: i32, stride: usize,
  keys: usize, scales: usize, centroids: usize, centroidCount: i32, nearest: usize, scratch: usize,
): void {
  const widened = scratch + 16;
  for (let i: i32 = 0; i < count; i++) {
    const code = codes + (<usize>i) * stride;
    for (let d: usize = 0; d < stride; d += 8) v128.store(widened + (d << 1), v128.load8x8_s(code + d));
    begin(scratch, 1);
    scan(keys, scales, centroids, centroidCount, stride, widened, 1, 0, -1);
    store<i32>(nearest + ((<usize>i) << 2), keyAt(0));
  }
}

// ---- Checksum: XXH32 ---------------------------------------------------------------------------------------------------

const P1: u32 = 2654435761;
const P2: u32 = 2246822519;
const P3: u32 = 3266489917;
const P4: u32 = 668265263;
const P5: u32 = 374761393;

/** The XXH32 hash of `length` bytes at `at`. */
export function checksum(at: usize, length: i32, seed: u32): u32 {
  const end = at + <usize>length;
  let hash: u32;
  if (length >= 16) {
    let lanes = i32x4.splat(0);
    lanes = i32x4.replace_lane(lanes, 0, seed + P1 + P2);
    lanes = i32x4.replace_lane(lanes, 1, seed + P2);
    lanes = i32x4.replace_lane(lanes, 2, seed);
    lanes = i32x4.replace_lane(lanes, 3, seed - P1);
    for (; at + 16 <= end; at += 16) {
      lanes = i32x4.add(lanes, i32x4.mul(v128.load(at), i32x4.splat(P2)));
      lanes = v128.or(i32x4.shl(lanes, 13), i32x4.shr_u(lanes, 19));
      lanes = i32x4.mul(lanes, i32x4.splat(P1));
    }
    hash =
      rotl<u32>(i32x4.extract_lane(lanes, 0), 1) + rotl<u32>(i32x4.extract_lane(lanes, 1), 7) +
      rotl<u32>(i32x4.extract_lane(lanes, 2), 12) + rotl<u32>(i32x4.extract_lane(lanes, 3), 18);
  } else {
    hash = seed + P5;
  }
  hash += <u32>length;
  for (; at + 4 <= end; at += 4) hash = rotl<u32>(hash + load<u32>(at) * P3, 17) * P4;
  for (; at < end; at++) hash = rotl<u32>(hash + <u32>load<u8>(at) * P5, 11) * P1;
  hash = (hash ^ (hash >>> 15)) * P2;
  hash = (hash ^ (hash >>> 13)) * P3;
  return hash ^ (hash >>> 16);
}
