import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeQuery } from "../../../src/stores/sqlite/vectors/codes.ts";
import { encode, strideOf } from "../../../src/stores/sqlite/vectors/collection.ts";
import { growTo, startKernel } from "../../../src/stores/sqlite/vectors/kernel.ts";

const kernel = startKernel(16 * 1024 * 1024);
growTo(kernel, 4 * 1024 * 1024);
const { buffer } = kernel.memory;
const [KEYS, SCALES, CODES, QUERY, HEAP, GONE, ALLOWED, SCRATCH] = [
  0, 65_536, 131_072, 2_097_152, 2_162_688, 2_293_760, 2_424_832, 2_555_904,
];

describe("the kernel", () => {
  it("computes XXH32", () => {
    const hash = (text: string, seed = 0) => {
      const bytes = new TextEncoder().encode(text);
      new Uint8Array(buffer, SCRATCH, bytes.length).set(bytes);
      return kernel.checksum(SCRATCH, bytes.length, seed) >>> 0;
    };
    // The published test vectors of the algorithm.
    expect(hash("")).toBe(0x02cc5d05);
    expect(hash("a")).toBe(0x550d7456);
    expect(hash("abc")).toBe(0x32d153ff);
    expect(hash("Nobody inspects the spammish repetition")).toBe(0xe2293b2f);
    expect(hash("abc", 1)).not.toBe(hash("abc"));
  });

  const unitFloat = fc.float({ min: -1, max: 1, noNaN: true });
  const setup = fc.integer({ min: 1, max: 70 }).chain((dimension) =>
    fc.record({
      vectors: fc.array(fc.array(unitFloat, { minLength: dimension, maxLength: dimension }), { minLength: 0, maxLength: 40 }),
      query: fc.array(unitFloat, { minLength: dimension, maxLength: dimension }),
      limit: fc.integer({ min: 1, max: 50 }),
      gone: fc.array(fc.integer({ min: 0, max: 39 }), { maxLength: 10 }),
      allow: fc.option(fc.array(fc.integer({ min: 0, max: 39 }), { minLength: 1, maxLength: 30 }), { nil: undefined }),
    }),
  );

  it("ranks codes as plain arithmetic does, whatever is gone or allowed", () => {
    fc.assert(
      fc.property(setup, ({ vectors, query, limit, gone, allow }) => {
        const stride = strideOf(query.length);
        const codes = vectors.map((vector) => encode(nonZero(vector)));
        // Keys far apart and far from their position show that it is keys that are compared.
        const key = (i: number) => i * 1_000_003;
        codes.forEach(({ scale, code }, i) => {
          new Int32Array(buffer, KEYS, 40)[i] = key(i);
          new Float32Array(buffer, SCALES, 40)[i] = scale;
          new Int8Array(buffer, CODES + i * stride, stride).set(code);
        });
        const wide = new Int16Array(buffer, QUERY, stride);
        const queryScale = encodeQuery(nonZero(query), wide);
        const goneMask = fillSet(GONE, gone.map(key));
        const allowedMask = allow ? fillSet(ALLOWED, allow.map(key)) : -1;

        kernel.begin(HEAP, limit);
        const segment = [KEYS, SCALES, CODES, codes.length, stride, QUERY, queryScale, GONE, goneMask] as const;
        if (allow) kernel.scanAllowed(...segment, ALLOWED, allowedMask);
        else kernel.scan(...segment);
        const heap = Array.from({ length: kernel.size() }, (_, i) => ({
          key: new Int32Array(buffer, HEAP, 2 * limit)[2 * i + 1]!,
          score: new Float32Array(buffer, HEAP, 2 * limit)[2 * i]!,
        }));

        const expected = codes
          .map(({ scale, code }, i) => {
            const product = code.reduce((sum, value, d) => sum + value * wide[d]!, 0);
            return { key: key(i), score: Math.fround(Math.fround(Math.fround(product) * scale) * Math.fround(queryScale)) };
          })
          .filter(({ key: k }) => !gone.map(key).includes(k) && (!allow || allow.map(key).includes(k)));
        expect(sorted(heap)).toEqual(sorted(expected).slice(0, limit));
      }),
      { numRuns: 300 },
    );
  });

  it("assigns each code to the centroid with the largest product", () => {
    const dimension = 48;
    const stride = strideOf(dimension);
    const vector = (seed: number) => encode(Float32Array.from({ length: dimension }, (_, i) => Math.sin(seed * 13.7 + i * (seed % 7))));
    const centroids = Array.from({ length: 11 }, (_, i) => vector(i + 1));
    const codes = Array.from({ length: 30 }, (_, i) => vector(i + 100));
    centroids.forEach(({ scale, code }, i) => {
      new Int32Array(buffer, KEYS, 11)[i] = i;
      new Float32Array(buffer, SCALES, 11)[i] = scale;
      new Int8Array(buffer, CODES + i * stride, stride).set(code);
    });
    codes.forEach(({ code }, i) => {
      new Int8Array(buffer, QUERY + i * stride, stride).set(code);
    });
    kernel.assign(QUERY, codes.length, stride, KEYS, SCALES, CODES, centroids.length, HEAP, SCRATCH);
    const expected = codes.map(({ code }) => {
      const scores = centroids.map((c) => Math.fround(Math.fround(c.code.reduce((sum, v, d) => sum + v * code[d]!, 0)) * c.scale));
      return scores.indexOf(Math.max(...scores));
    });
    expect([...new Int32Array(buffer, HEAP, codes.length)]).toEqual(expected);
    expect(new Set(expected).size).toBeGreaterThan(3);
  });
});

function fillSet(at: number, keys: number[]): number {
  if (keys.length === 0) return -1;
  new Int32Array(buffer, SCRATCH, keys.length).set(keys);
  const mask = 2 ** Math.ceil(Math.log2(keys.length * 2)) - 1;
  kernel.fillSet(at, mask, SCRATCH, keys.length);
  return mask;
}

function nonZero(values: readonly number[]): Float32Array {
  const vector = Float32Array.from(values);
  if (vector.every((value) => Math.abs(value) < 1e-6)) vector[0] = 1;
  return vector;
}

function sorted(hits: { key: number; score: number }[]): { key: number; score: number }[] {
  return hits.map(({ key, score }) => ({ key, score: score + 0 })).sort((a, b) => b.score - a.score || a.key - b.key);
}
