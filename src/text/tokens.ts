/** How many tokens a text costs a language model, by a real byte-pair encoding. The tables load on first use. */
export async function countTokens(text: string): Promise<number> {
  const { countTokens: count } = await import("gpt-tokenizer/encoding/o200k_base");
  // Special tokens in user text are just text.
  return count(text, { disallowedSpecial: new Set() });
}
