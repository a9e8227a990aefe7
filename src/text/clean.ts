/** Returns why a text cannot be stored on every engine, or `undefined` if it can. PostgreSQL has no NUL, UTF-8 no lone surrogates. */
export function unstorable(text: string): string | undefined {
  if (text.includes("\u0000")) return "contains a NUL character; remove it";
  if (!text.isWellFormed()) return "contains half of a surrogate pair, which is not valid Unicode; remove it";
  return undefined;
}

/**
 * Returns whether a text has no visible character: only white space, control characters and invisible ones such as zero-width spaces.
 * Takes one pass over the text.
 */
export function isBlank(text: string): boolean {
  return !/[^\s\p{Cc}\p{Default_Ignorable_Code_Point}\u2800]/u.test(text);
}
