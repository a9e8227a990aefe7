import { estimateTokens } from "./estimate-tokens.ts";

/** Cuts the text at a word to about `tokens`, and appends a note in place of the rest. */
export function cutText(text: string, tokens: number, note: string): { text: string; cut: boolean } {
  if (estimateTokens(text) <= tokens) return { text, cut: false };
  let end = Math.min(text.length, Math.max(0, tokens * 6));
  while (end > 0 && estimateTokens(text.slice(0, end)) > tokens) end = Math.floor(end * 0.9);
  const space = text.lastIndexOf(" ", end);
  const at = space > end * 0.7 ? space : end;
  // Half of a surrogate pair would not be valid text.
  const whole = /[\ud800-\udbff]/.test(text[at - 1] ?? "") ? at - 1 : at;
  return { text: `${text.slice(0, whole).trimEnd()} … [${note}]`, cut: true };
}

/** Returns as many items from the front as fit, at least one. */
export function withinBudget<Item>(items: readonly Item[], tokens: number, costOf: (item: Item) => number): Item[] {
  let spent = 0;
  const fitting: Item[] = [];
  for (const item of items) {
    spent += costOf(item);
    if (spent > tokens && fitting.length > 0) break;
    fitting.push(item);
  }
  return fitting;
}

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
  if (records.reduce((sum, record) => sum + recordTokens(record), 0) <= tokens) return { records, shortened: 0, omitted: 0 };
  const share = Math.max(minShare, Math.floor(tokens / Math.max(1, records.length)));
  const shortened = records.map((record) => (recordTokens(record) <= share ? record : shorten(record, share)));
  const fitting = withinBudget(shortened, tokens, recordTokens);
  return {
    records: fitting,
    shortened: fitting.filter((record, index) => record !== records[index]).length,
    omitted: records.length - fitting.length,
  };
}

/** Estimates the tokens of a record as JSON. */
export function recordTokens(record: unknown): number {
  return estimateTokens(JSON.stringify(record));
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
