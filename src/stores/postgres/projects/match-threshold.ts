/** A term of a query. */
export interface WeightedTerm {
  /** Quoted, as part of a tsquery. */
  readonly lexeme: string;
  /** Its inverse document frequency. */
  readonly weight: number;
  /** The share of records that contain it, 0…1. */
  readonly share: number;
}

/** Maximum number of decisions in a tsquery. PostgreSQL evaluates the whole query per entry of the index. */
const DECISIONS_MAX = 200;
/** Weights that differ by less are equal: sums of floating-point numbers depend on their order. */
const EPSILON = 1e-9;

/**
 * Returns a tsquery for the records whose terms have a summed weight of at least `threshold`, or `undefined` if no record can have it. The
 * index evaluates it without reading a record. `terms` has the largest weight first. A query that would become too long matches further
 * records as well, never fewer.
 */
export function thresholdQuery(terms: readonly WeightedTerm[], threshold: number): string | undefined {
  const rest = terms.map((_, index) => totalWeight(terms.slice(index)));
  const any = (from: number) => terms.slice(from).map(({ lexeme }) => lexeme);
  let decisions = 0;
  /** Returns the alternatives for terms from `from` on: none if the threshold is out of reach, "always" if it is reached. */
  const alternatives = (from: number, missing: number): readonly string[] | "always" => {
    if (missing <= EPSILON) return "always";
    if (from === terms.length || rest[from]! < missing - EPSILON) return [];
    if (++decisions > DECISIONS_MAX) return any(from);
    const { lexeme, weight } = terms[from]!;
    const having = alternatives(from + 1, missing - weight);
    const lacking = alternatives(from + 1, missing);
    if (lacking === "always") return "always";
    if (having === "always") return [lexeme, ...lacking];
    return having.length === 0 ? lacking : [`${lexeme}&(${having.join("|")})`, ...lacking];
  };
  const found = alternatives(0, threshold);
  const matching = found === "always" ? any(0) : found;
  return matching.length === 0 ? undefined : matching.join("|");
}

/** Steps between zero and the summed weight in which thresholds are estimated. */
const STEPS = 200;

/** Returns the largest threshold that `wanted` of the records probably reach, if terms occurred independently of each other. */
export function estimateThreshold(terms: readonly WeightedTerm[], records: number, wanted: number): number {
  const total = totalWeight(terms);
  const probability = new Float64Array(STEPS + 1);
  probability[0] = 1;
  for (const { weight, share } of terms) {
    const steps = Math.round((weight / total) * STEPS);
    for (let sum = STEPS; sum >= 0; sum--)
      probability[sum] = probability[sum]! * (1 - share) + (sum >= steps ? probability[sum - steps]! * share : 0);
  }
  let expected = 0;
  for (let sum = STEPS; sum > 0; sum--) {
    expected += probability[sum]! * records;
    if (expected >= wanted) return ((sum - 1) / STEPS) * total;
  }
  return 0;
}

export function totalWeight(terms: readonly WeightedTerm[]): number {
  return terms.reduce((sum, { weight }) => sum + weight, 0);
}
