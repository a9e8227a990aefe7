import { CairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import type { Operation } from "../operations/operation.ts";
import type { AnswerRules } from "./answer.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The arguments of every tool that concern its answer, and the fields that the operation gets. */
export interface AnswerFields extends Pick<AnswerRules, "detail" | "maxTokens"> {
  readonly fields: Fields;
}

/** Reads `detail` and `max_tokens` of a call. Every tool accepts both; only some operations have a budget of their own. */
export function readAnswerFields(operation: Operation, input: Fields): AnswerFields {
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
