// A fast deterministic model for tests that need the same vectors in several processes. Each model name has its own hash: in
// every model texts that share words are near, and vectors of two models are unrelated.
export function hashEmbedder({ model, dimension, paceMs = 0 }) {
  return {
    model,
    version: "1",
    dimension,
    async embed(texts) {
      if (paceMs > 0) await new Promise((resolve) => setTimeout(resolve, paceMs));
      return texts.map((text) => vectorOf(`${text}`, model, dimension));
    },
    async close() {},
  };
}

function vectorOf(text, model, dimension) {
  const vector = new Float32Array(dimension);
  for (const word of text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []) {
    let hash = 2166136261;
    for (const char of `${model} ${word}`) hash = Math.imul(hash ^ char.codePointAt(0), 16777619) >>> 0;
    for (let spread = 0; spread < 4; spread++) {
      hash = (Math.imul(hash, 1664525) + 1013904223) >>> 0;
      vector[(hash >>> 8) % dimension] += hash & 128 ? 1 : -1;
    }
  }
  vector[0] += 1e-3; // even an empty text has a direction
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}
