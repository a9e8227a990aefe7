/** Why a text cannot be stored faithfully everywhere, or `undefined` if it can. PostgreSQL has no NUL, UTF-8 no lone surrogates. */
export function unstorable(text: string): string | undefined {
  if (text.includes("\u0000")) return "contains a NUL character; remove it";
  if (!text.isWellFormed()) return "contains half of a surrogate pair, which is not valid Unicode; remove it";
  return undefined;
}
