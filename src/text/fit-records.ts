import { estimateTokens, recordTokens, withinBudget } from "./estimate-tokens.ts";

export interface FittedRecords<RecordType> {
  readonly records: readonly RecordType[];
  /** Records that were shortened. */
  readonly shortened: number;
  /** Records that were omitted from the end. */
  readonly omitted: number;
}

export interface FitRules<RecordType> {
  /** Tokens that a record keeps at least: with fewer it says too little to choose by. */
  readonly minShare: number;
  readonly shorten: (record: RecordType, tokens: number) => RecordType;
}

/** Fits records into a budget: long records are shortened to a fair share first, and only then are records omitted from the end. */
export function fitRecords<RecordType>(
  records: readonly RecordType[],
  tokens: number,
  { minShare, shorten }: FitRules<RecordType>,
): FittedRecords<RecordType> {
  if (fitsWhole(records, tokens)) return { records, shortened: 0, omitted: 0 };
  const share = Math.max(minShare, Math.floor(tokens / Math.max(1, records.length)));
  const shortened = records.map((record) => (recordTokens(record) <= share ? record : shorten(record, share)));
  const fitting = withinBudget(shortened, tokens, recordTokens);
  return {
    records: fitting,
    shortened: fitting.filter((record, index) => record !== records[index]).length,
    omitted: records.length - fitting.length,
  };
}

/** Returns whether all records fit. A token has at least one character, so short records need no estimate. */
function fitsWhole(records: readonly unknown[], tokens: number): boolean {
  if (tokens === Number.POSITIVE_INFINITY) return true;
  const texts = records.map((record) => JSON.stringify(record));
  const total = (size: (text: string) => number) => texts.reduce((sum, text) => sum + size(text), 0);
  return total(({ length }) => length) <= tokens || total(estimateTokens) <= tokens;
}

/** Returns a note on records that a budget shortened or omitted, and which operation returns them in full; nothing if all fitted. */
export function fitNote(
  maxTokens: number,
  { shortened, omitted }: Pick<FittedRecords<unknown>, "shortened" | "omitted">,
  getOperation: string,
): { note?: string } {
  const parts = [...(shortened > 0 ? [`${shortened} shortened`] : []), ...(omitted > 0 ? [`${omitted} omitted`] : [])];
  if (parts.length === 0) return {};
  return { note: `Limited to ${maxTokens} tokens: ${parts.join(", ")}. Use ${getOperation} for a full record.` };
}
