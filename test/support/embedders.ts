import { CairnError } from "../../src/model/errors.ts";
import type { Embedder } from "../../src/ports/embedder.ts";
import { extractTerms } from "../../src/text/terms.ts";

export interface TestEmbedder extends Embedder {
  /** Number of texts embedded so far. */
  calls: number;
  /** Behaviour of the next calls: answer, fail, hang until aborted, or return invalid vectors. */
  mood: "well" | "down" | "hanging" | "wrong dimension" | "not finite" | "too few";
}

/** Returns a small deterministic embedder: words are hashed into dimensions, so texts that share words are near. Its moods simulate failures of a provider. */
export function testEmbedder({ model = "test", version = "1", dimension = 64 } = {}): TestEmbedder {
  const embedder: TestEmbedder = {
    model,
    version,
    dimension,
    calls: 0,
    mood: "well",
    async embed(texts, { signal } = {}) {
      if (embedder.mood === "down") throw new CairnError("unavailable", "the provider is down");
      if (embedder.mood === "hanging")
        return new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason), { once: true }));
      embedder.calls += texts.length;
      const vectors = texts.map((text) => vectorOf(text, dimension));
      if (embedder.mood === "wrong dimension") return vectors.map((vector) => vector.slice(1));
      if (embedder.mood === "not finite") return vectors.map((vector) => vector.fill(Number.NaN));
      return embedder.mood === "too few" ? vectors.slice(1) : vectors;
    },
    async close() {},
  };
  return embedder;
}

function vectorOf(text: string, dimension: number): Float32Array {
  const vector = new Float32Array(dimension);
  for (const word of extractTerms(text)) {
    let hash = 2166136261;
    for (const char of word) hash = Math.imul(hash ^ char.codePointAt(0)!, 16777619) >>> 0;
    vector[hash % dimension]! += 1;
  }
  vector[0]! += 1e-3; // even an empty text has a direction
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}
