/** How the vectors of the tokens become one: their mean, or the vector of the first token. */
export type Pooling = "mean" | "cls";

/** One vector per token, row after row. */
export interface TokenVectors {
  readonly data: Float32Array;
  readonly tokens: number;
  readonly width: number;
}

/** Returns one unit-length vector of the first `dimension` values: models with nested dimensions keep most meaning there. */
export function pool({ data, tokens, width }: TokenVectors, pooling: Pooling, dimension: number): Float32Array {
  const vector = data.slice(0, dimension);
  if (pooling === "mean")
    for (let token = 1; token < tokens; token++)
      for (let index = 0; index < dimension; index++) vector[index]! += data[token * width + index]!;
  let sum = 0;
  for (const value of vector) sum += value * value;
  const length = Math.sqrt(sum);
  return vector.map((value) => value / length);
}

/** Output names with one vector per token, as exporters call them. */
const TOKEN_OUTPUTS = ["last_hidden_state", "token_embeddings"];
/** The output name of a vector that the model has pooled itself. */
const POOLED_OUTPUT = "sentence_embedding";

/** Chooses the output to read. The model's own pooling comes first unless the user chose one. */
export function chooseOutput(names: readonly string[], pooling: Pooling | undefined): string | undefined {
  const pooled = names.filter((name) => name === POOLED_OUTPUT);
  const tokens = TOKEN_OUTPUTS.filter((name) => names.includes(name));
  return (pooling === undefined ? [...pooled, ...tokens, ...names] : [...tokens, ...names])[0];
}
