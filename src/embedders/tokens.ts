import { readFile } from "node:fs/promises";
import type { GptEncoding } from "gpt-tokenizer/GptEncoding";
import { builtFile } from "../files/built-file.ts";
import { estimateTokens } from "../text/budget.ts";

/** Counts the tokens of a text with a byte-pair encoding. The tables load on first use. */
export async function countTokens(text: string): Promise<number> {
  return (await encoding()).countTokens(text, AS_TEXT);
}

/** Cuts a text to a limit of tokens and returns their number. Short texts cannot exceed the limit and are not counted. */
export async function cutToTokens(text: string, max: number): Promise<{ text: string; tokens: number }> {
  if (Buffer.byteLength(text) <= max) return { text, tokens: estimateTokens(text) };
  const { encode, decode } = await encoding();
  const tokens = encode(text, AS_TEXT);
  // Other vocabularies need up to a fifth more tokens for the same text.
  const limit = Math.floor(max * 0.8);
  return tokens.length <= limit ? { text, tokens: tokens.length } : { text: decode(tokens.slice(0, limit)), tokens: limit };
}

/** Encodes special tokens in user text as plain text. */
const AS_TEXT = { disallowedSpecial: new Set<string>() };

let loading: Promise<GptEncoding> | undefined;

function encoding(): Promise<GptEncoding> {
  loading ??= load().catch((error) => {
    loading = undefined; // the next call tries again
    throw error;
  });
  return loading;
}

async function load(): Promise<GptEncoding> {
  const { GptEncoding } = await import("gpt-tokenizer/GptEncoding");
  const tokens = JSON.parse(await readFile(builtFile("models/o200k.json"), "utf8")) as string[];
  return GptEncoding.getEncodingApi("o200k_base", () => tokens);
}
