import type { Knowledge } from "../model/knowledge.ts";
import { cutText, recordTokens } from "../text/estimate-tokens.ts";
import { type FittedRecords, fitRecords } from "../text/fit-records.ts";

/** Fits records into a budget: long answers are shortened before a record is omitted. */
export function fitKnowledge<Kind extends Knowledge>(records: readonly Kind[], tokens: number): FittedRecords<Kind> {
  return fitRecords(records, tokens, { minShare: 200, shorten });
}

function shorten<Kind extends Knowledge>(record: Kind, tokens: number): Kind {
  const budget = tokens - recordTokens({ ...record, answer: "" }) - 15; // the note costs about 15
  return { ...record, answer: cutText(record.answer, Math.max(20, budget), "cut; use knowledge_get").text };
}
