import { CairnError } from "../../model/errors.ts";

/** Validates the vectors of a provider and scales them to unit length. */
export function toUnitVectors(provider: string, given: readonly ArrayLike<number>[], count: number, dimension: number): Float32Array[] {
  if (given.length !== count) throw new CairnError("unavailable", `${provider} returned ${given.length} vectors for ${count} texts.`);
  return given.map((values) => {
    if (values.length !== dimension)
      throw new CairnError(
        "unavailable",
        `${provider} returned a vector of ${values.length} dimensions where ${dimension} were expected. Check embedder.model and embedder.dimensions.`,
      );
    const vector = Float32Array.from(values);
    const length = Math.hypot(...vector);
    if (!Number.isFinite(length) || length === 0)
      throw new CairnError("unavailable", `${provider} returned a vector that is zero or not finite.`);
    return Math.abs(length - 1) < 1e-6 ? vector : vector.map((value) => value / length);
  });
}
