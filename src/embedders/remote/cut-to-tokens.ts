import { estimateTokens } from "../../text/estimate-tokens.ts";

/** Cuts a text to a limit of tokens and returns their estimated number. Short texts cannot exceed the limit and are not cut. */
export function cutToTokens(text: string, max: number): { readonly text: string; readonly tokens: number } {
  if (Buffer.byteLength(text) <= max) return { text, tokens: estimateTokens(text) };
  // The estimate may be 10 % low, and other vocabularies need up to a fifth more tokens for the same text.
  const limit = Math.floor(max * 0.75);
  let cut = text;
  for (let tokens = estimateTokens(cut); ; tokens = estimateTokens(cut)) {
    if (tokens <= limit) return { text: cut, tokens };
    cut = wholeCharacters(cut.slice(0, Math.floor(cut.length * Math.min(0.98, limit / tokens))));
  }
}

/** Drops half of a surrogate pair at the end. */
function wholeCharacters(text: string): string {
  return /[\ud800-\udbff]$/.test(text) ? text.slice(0, -1) : text;
}
