import type { CallToolResult } from "@modelcontextprotocol/server";
import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import type { Operation } from "../operations/operation.ts";
import { type Answer, fitAnswer } from "./fit-answer.ts";

export type Output = Readonly<Record<string, unknown>>;

/** How a client wants its answer. */
export interface AnswerRules {
  /** `full` returns the operation's whole output as structured content, as HTTP does. */
  readonly detail: "compact" | "full";
  readonly maxTokens: number;
  /** Repeats a call that returns pages, with a smaller page. */
  readonly repeat: (limit: number) => Promise<Output>;
}

/**
 * Makes the result of a tool call. Clients pass either the text or the structured content to the model, so both say the same, and the
 * token budget holds for each of them.
 */
export async function answerOf(operation: Operation, output: Output, rules: AnswerRules): Promise<CallToolResult> {
  const make = (from: Output): Answer => {
    const text = operation.render(from);
    return { text, data: rules.detail === "full" ? from : compactOf(operation, from, text) };
  };
  const whole = make(output);
  // A token has at least one byte, so a short answer needs no estimate.
  const short = Math.max(Buffer.byteLength(whole.text), Buffer.byteLength(JSON.stringify(whole.data))) <= rules.maxTokens;
  const fitted = short ? whole : await fitAnswer(operation, output, whole, make, rules);
  if (!fitted) return answerOf(operation, { ...output, note: FULL_TOO_LONG }, { ...rules, detail: "compact" });
  const { text, data } = fitted;
  return { content: [{ type: "text", text }], structuredContent: data };
}

const FULL_TOO_LONG = "The full detail exceeds max_tokens even for one record. Use a larger max_tokens.";

function compactOf({ mcp }: Operation, output: Output, text: string): Record<string, unknown> {
  return mcp?.compact ? (shorten(mcp.compact(output)) as Record<string, unknown>) : { text };
}

/** Rounds numbers to three digits after the point and removes fields without a value: they cost tokens and inform nobody. */
function shorten(value: unknown): unknown {
  if (typeof value === "number") return Math.round(value * 1_000) / 1_000;
  if (Array.isArray(value)) return value.map(shorten);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).flatMap(([key, item]) => (isEmpty(item) ? [] : [[key, shorten(item)]])));
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === "" || (typeof value === "object" && value !== null && Object.keys(value).length === 0);
}

/** The arguments of every tool that concern its answer, and the fields that the operation gets. */
export interface AnswerFields extends Pick<AnswerRules, "detail" | "maxTokens"> {
  readonly fields: Output;
}

/** Reads `detail` and `max_tokens` of a call. Every tool accepts both; only some operations have a budget of their own. */
export function readAnswerFields(operation: Operation, input: Output): AnswerFields {
  const { detail = "compact", ...rest } = input;
  if (detail !== "compact" && detail !== "full")
    throw new CairnError("invalid_input", `detail: must be one of "compact", "full".`, {
      details: { issues: [{ field: "detail", problem: 'must be one of "compact", "full"' }] },
    });
  const own = operation.input.shape.max_tokens;
  const maxTokens = readBudget(rest.max_tokens, own ? (own.safeParse(undefined).data as number) : LIMITS.answerTokens);
  const { max_tokens: _, ...others } = rest;
  if (!own) return { detail, maxTokens, fields: others };
  // The budget applies to the compact rows. An operation that applied it to full records would omit rows that fit.
  const wide = detail === "compact" && operation.mcp?.rows !== undefined;
  return { detail, maxTokens, fields: { ...others, max_tokens: wide ? LIMITS.answerTokensMax : maxTokens } };
}

function readBudget(value: unknown, fallback: number): number {
  const tokens = value === undefined ? fallback : typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  const { answerTokensMin: min, answerTokensMax: max } = LIMITS;
  if (typeof tokens === "number" && Number.isInteger(tokens) && tokens >= min && tokens <= max) return tokens;
  const problem = `must be a whole number from ${min} to ${max}`;
  throw new CairnError("invalid_input", `max_tokens: ${problem}.`, { details: { issues: [{ field: "max_tokens", problem }] } });
}
