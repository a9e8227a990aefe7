/** Returns what is wrong with the vectors of an embedder, or `undefined` if they are valid. */
export function vectorProblem(vectors: readonly Float32Array[], count: number, dimension: number): string | undefined {
  if (vectors.length !== count) return `it returned ${vectors.length} vectors for ${count} texts`;
  for (const vector of vectors) {
    if (vector.length !== dimension) return `it returned a vector of ${vector.length} dimensions instead of ${dimension}`;
    let square = 0;
    for (const value of vector) square += value * value;
    if (!(Math.abs(square - 1) < 0.01)) return "it returned a vector that is not of unit length or not finite";
  }
  return undefined;
}
