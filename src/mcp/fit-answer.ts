import type { Operation } from "../operations/operation.ts";
import { cutText, tokensAtMost } from "../text/estimate-tokens.ts";
import type { AnswerRules, Output } from "./answer.ts";

/** The two forms of an answer. */
export interface Answer {
  readonly text: string;
  readonly data: Record<string, unknown>;
}

/** Characters that a text keeps at least when it is cut: ids, times and paths stay whole. */
const MIN_CHARS = 60;

/**
 * Shortens an answer until its text and its data are within the budget: first rows are omitted from the end, then long texts are cut.
 * Returns nothing if the full detail of one record exceeds the budget.
 */
export async function fitAnswer(
  operation: Operation,
  output: Output,
  whole: Answer,
  make: (output: Output) => Answer,
  { detail, maxTokens, repeat }: AnswerRules,
): Promise<Answer | undefined> {
  const fits = ({ text, data }: Answer) => tokensAtMost(text) <= maxTokens && tokensAtMost(JSON.stringify(data)) <= maxTokens;
  if (fits(whole)) return whole;
  const rows = rowsOf(operation, output);
  const orCompact = (answer: Answer) => (detail === "compact" || fits(answer) ? answer : undefined);
  if (rows === undefined) return orCompact(fitTexts(output, whole, make, fits, maxTokens));

  const { field, items } = rows;
  const limited = (from: Output, count: number, note: string) => make(withNote({ ...from, [field]: items.slice(0, count) }, note));
  const paged = "cursor" in operation.input.shape && "limit" in operation.input.shape;
  const noteOf = (count: number) =>
    `Limited to ${maxTokens} tokens: ${count} of ${items.length} shown. ${paged ? "Continue with next_cursor." : "Use a larger max_tokens or filters for the rest."}`;
  // The note and the cursor of a shorter page count as well.
  const spare = paged ? { next_cursor: "x".repeat(120), ...output } : output;
  const count = largest(items.length, (some) => fits(limited(spare, some, noteOf(some))));
  if (count === 0) {
    const first = withNote({ ...output, [field]: items.slice(0, 1) }, items.length > 1 ? noteOf(1) : undefined);
    return orCompact(fitTexts(first, make(first), make, fits, maxTokens));
  }
  if (!paged || count === items.length) return limited(output, count, noteOf(count));
  // Only the operation can compute the cursor of a shorter page.
  return make(withNote(await repeat(count), noteOf(count)));
}

/** Cuts long texts to one length, the largest that fits. If that is not enough, limits every list to one length. */
function fitTexts(
  output: Output,
  whole: Answer,
  make: (output: Output) => Answer,
  fits: (answer: Answer) => boolean,
  maxTokens: number,
): Answer {
  if (Object.keys(whole.data).join() === "text") return fitPlainText(whole.text, fits, maxTokens);
  const note = `Cut to about ${maxTokens} tokens. Use a larger max_tokens for the rest.`;
  const cutAt = (chars: number) => make(withNote(cutStrings(output, chars) as Output, note));
  const longest = longestString(output);
  if (longest > MIN_CHARS && fits(cutAt(MIN_CHARS)))
    return cutAt(MIN_CHARS + largest(longest - MIN_CHARS, (some) => fits(cutAt(MIN_CHARS + some))));
  const short = cutStrings(output, MIN_CHARS) as Output;
  const limitTo = (count: number) => make(withNote(cutLists(short, count) as Output, note));
  return limitTo(largest(longestList(short), (count) => fits(limitTo(count))));
}

/** Cuts an answer that is text in both forms. */
function fitPlainText(text: string, fits: (answer: Answer) => boolean, maxTokens: number): Answer {
  const cut = (chars: number): Answer => {
    const shorter = cutText(text.slice(0, chars), maxTokens, "").text.replace(/ … \[\]$/, "");
    const noted = `${shorter.trimEnd()} … [cut to ${maxTokens} tokens; use a larger max_tokens or filters]`;
    return { text: noted, data: { text: noted } };
  };
  return cut(largest(text.length, (chars) => fits(cut(chars))));
}

function rowsOf({ mcp }: Operation, output: Output): { field: string; items: readonly unknown[] } | undefined {
  const items = mcp?.rows === undefined ? undefined : output[mcp.rows];
  return Array.isArray(items) && items.length > 0 ? { field: mcp!.rows!, items } : undefined;
}

function withNote(output: Output, note: string | undefined): Output {
  if (note === undefined) return output;
  return { ...output, note: output.note === undefined ? note : `${note} ${String(output.note)}` };
}

/** Returns the largest number from 0 to `max` for which the test holds; it must hold for smaller numbers as well. */
function largest(max: number, holds: (count: number) => boolean): number {
  let low = 0;
  let high = max;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (holds(middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}

function longestString(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 0;
  return Object.values(value).reduce((longest: number, item) => Math.max(longest, longestString(item)), 0);
}

function longestList(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return Object.values(value).reduce(
    (longest: number, item) => Math.max(longest, longestList(item)),
    Array.isArray(value) ? value.length : 0,
  );
}

function cutLists(value: unknown, count: number): unknown {
  if (Array.isArray(value)) return value.slice(0, count).map((item) => cutLists(item, count));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, cutLists(item, count)]));
}

function cutStrings(value: unknown, chars: number): unknown {
  if (typeof value === "string") return value.length <= chars ? value : `${value.slice(0, chars).trimEnd().toWellFormed()} … [cut]`;
  if (Array.isArray(value)) return value.map((item) => cutStrings(item, chars));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, cutStrings(item, chars)]));
}
