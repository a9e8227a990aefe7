/** Splits text into the words that full-text search indexes: lower case, identifiers both whole and in their parts. */
export function searchWords(text: string): string[] {
  const words: string[] = [];
  const known = new Map<string, readonly string[]>(); // code says the same names again and again
  for (const [token] of text.matchAll(/[\p{L}\p{N}_$][\p{L}\p{N}\p{M}_$]*/gu)) {
    const whole = token.toLowerCase();
    words.push(whole);
    if (ONE_PART.test(token)) continue; // before it is looked up: that takes longer
    const parts = known.get(token) ?? identifierParts(token);
    known.set(token, parts);
    if (parts.length > 1) words.push(...parts);
  }
  return words;
}

/** What has no parts, told at a glance: most words of any text. */
const ONE_PART = /^(?:[A-Z]?[a-z]+|[0-9]+|[A-Z]+)$/;

/** `parseHTTPRequest2` → parse, http, request, 2; `snake_case` → snake, case. */
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

/** The distinct words of a query, without those that carry no meaning unless nothing else is left. Bounded, so that a pasted log stays cheap. */
export function queryWords(query: string, max = 64): string[] {
  const words = [...new Set(searchWords(query))];
  const telling = words.filter((word) => !STOP_WORDS.has(word));
  return (telling.length > 0 ? telling : words).slice(0, max);
}

/** Words so common in questions that they only cost time. */
const STOP_WORDS = new Set(
  "a an and are as at be but by can could do does for from get has have how i if in into is it its of on or should so than that the their then there these they this to was we were what when where which who why will with would you your".split(
    " ",
  ),
);
