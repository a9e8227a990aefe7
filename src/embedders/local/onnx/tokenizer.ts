import { Tokenizer } from "@huggingface/tokenizers";

/** Turns text into token ids as a tokenizer.json describes it. */
export interface ModelTokenizer {
  /** Token ids with the model's special tokens around them; `maxTokens` counts these. */
  encode(text: string, maxTokens: number): number[];
}

/** Opens a tokenizer.json: WordPiece, Unigram or BPE. Its settings for truncation and padding are not used. */
export function modelTokenizer(file: object): ModelTokenizer {
  const tokenizer = new Tokenizer(file, {});
  const plain = (text: string): number[] => tokenizer.encode(text, { add_special_tokens: false }).ids.filter(Number.isInteger);
  const { before, after } = frameOf(tokenizer.encode("a").ids, plain("a"));
  return {
    encode: (text, maxTokens) => [...before, ...plain(text).slice(0, Math.max(0, maxTokens - before.length - after.length)), ...after],
  };
}

/** Returns the special tokens before and after a text, from the same text with and without them. */
export function frameOf(framed: readonly number[], plain: readonly number[]): { before: readonly number[]; after: readonly number[] } {
  for (let start = 0; start + plain.length <= framed.length; start++)
    if (plain.every((id, index) => framed[start + index] === id))
      return { before: framed.slice(0, start), after: framed.slice(start + plain.length) };
  throw new Error("The post-processor of tokenizer.json changes the tokens of a text, which is not supported");
}
