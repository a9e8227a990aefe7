/** Splits text into the terms of the full-text index: lower case, identifiers both whole and in their parts. */
export function extractTerms(text: string): string[] {
  const words: string[] = [];
  const known = new Map<string, readonly string[]>(); // code repeats the same names
  for (const [token] of text.matchAll(/[\p{L}\p{N}_$][\p{L}\p{N}\p{M}_$]*/gu)) {
    const whole = token.toLowerCase();
    words.push(whole);
    if (ONE_PART.test(token)) continue; // cheaper than the look-up
    const parts = known.get(token) ?? identifierParts(token);
    known.set(token, parts);
    if (parts.length > 1) words.push(...parts);
  }
  return words;
}

/** Matches tokens without parts, which are most words of any text. */
const ONE_PART = /^(?:[A-Z]?[a-z]+|[0-9]+|[A-Z]+)$/;

/** Splits `parseHTTPRequest2` into parse, http, request, 2 and `snake_case` into snake, case. */
export function identifierParts(token: string): string[] {
  if (ONE_PART.test(token)) return [token.toLowerCase()];
  return token
    .replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, "$1 $2")
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, "$1 $2")
    .replace(/(\p{L})(\p{N})/gu, "$1 $2")
    .replace(/(\p{N})(\p{L})/gu, "$1 $2")
    .split(/[\s_$]+/)
    .filter(Boolean)
    .map((part) => part.toLowerCase());
}

/** Returns the distinct terms of a query, without stop words unless there are no others. The limit bounds the cost of a pasted log. */
export function extractQueryTerms(query: string, max = 64): string[] {
  const words = [...new Set(extractTerms(query))];
  const terms = words.filter((word) => !STOP_WORDS.has(word));
  return (terms.length > 0 ? terms : words).slice(0, max);
}

/** Words too common in questions to be useful terms. */
const STOP_WORDS = new Set(
  "a an and are as at be but by can could do does for from get has have how i if in into is it its of on or should so than that the their then there these they this to was we were what when where which who why will with would you your".split(
    " ",
  ),
);
