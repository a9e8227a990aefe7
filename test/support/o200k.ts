import { countTokens as count } from "gpt-tokenizer/encoding/o200k_base";

/** Counts the tokens of a text exactly, in the o200k encoding. Special tokens count as plain text. */
export function countTokens(text: string): number {
  return count(text, { disallowedSpecial: new Set() });
}
