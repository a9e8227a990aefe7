import type { Knowledge } from "../model/knowledge.ts";
import { cutText, estimateTokens, withinBudget } from "../text/budget.ts";

export interface Fitted {
  readonly shown: readonly Knowledge[];
  /** How many were shortened. */
  readonly cut: number;
  /** How many from the end did not fit at all. */
  readonly left: number;
}

/** Records as far as they fit: long answers are cut to a fair share first, and only then are records left out from the end. */
export function fitKnowledge(records: readonly Knowledge[], tokens: number): Fitted {
  const share = Math.max(SMALLEST_SHARE, Math.floor(tokens / Math.max(1, records.length)));
  const whole = records.reduce((total, record) => total + costOf(record), 0) <= tokens;
  const shown = withinBudget(whole ? records : records.map((record) => shorten(record, share)), tokens, costOf);
  return {
    shown,
    cut: shown.filter((record, index) => record !== records[index]).length,
    left: records.length - shown.length,
  };
}

/** A record of fewer tokens says too little to choose by. */
const SMALLEST_SHARE = 200;

const costOf = (record: Knowledge) => estimateTokens(JSON.stringify(record));

function shorten(record: Knowledge, tokens: number): Knowledge {
  if (costOf(record) <= tokens) return record;
  const room = tokens - costOf({ ...record, answer: "" }) - 15; // the note itself costs some
  return { ...record, answer: cutText(record.answer, Math.max(20, room), "cut; knowledge_get has all of it").text };
}
