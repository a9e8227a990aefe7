export interface TinyModel {
  /** One vector per token id. */
  readonly rows: readonly (readonly number[])[];
  readonly name?: string;
  readonly inputs?: readonly string[];
  /** `sentence_embedding` holds the largest value of each column, so that it differs from a mean. */
  readonly output?: string;
  /** File of the table next to the model, instead of inside it. */
  readonly external?: string;
}

export function writeTinyModel(folder: string, model: TinyModel): void;
