import { estimateTokens } from "./budget.ts";

/** How many tokens a text costs a language model, by a real byte-pair encoding. The tables load on first use. */
export async function countTokens(text: string): Promise<number> {
  const { countTokens: count } = await import("gpt-tokenizer/encoding/o200k_base");
  // Special tokens in user text are just text.
  return count(text, { disallowedSpecial: new Set() });
}

/** The text, cut to so many tokens, and how many it has. Short texts cannot exceed the limit and are not even counted. */
export async function cutToTokens(text: string, max: number): Promise<{ text: string; tokens: number }> {
  if (Buffer.byteLength(text) <= max) return { text, tokens: estimateTokens(text) };
  const { encode, decode } = await import("gpt-tokenizer/encoding/o200k_base");
  const tokens = encode(text, { disallowedSpecial: new Set() });
  // The other vocabularies in use need up to a fifth more tokens for the same text.
  const kept = Math.floor(max * 0.8);
  return tokens.length <= kept ? { text, tokens: tokens.length } : { text: decode(tokens.slice(0, kept)), tokens: kept };
}
