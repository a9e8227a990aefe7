export interface MarkedPart {
  readonly text: string;
  readonly isMatch: boolean;
}

/** Shorter terms occur everywhere. */
const MIN_CHARS = 3;
/** Endings that word forms differ in; the index compares stems, which this approximates. */
const ENDINGS = /(?:ings?|ed|es|s|ly|e)$/;

/** Words that are in every text and therefore explain nothing. */
const COMMON = new Set(
  "the and for are was were with that this from have has had not but you your all any can its our out who why how what when where which does did will into than then they them there".split(
    " ",
  ),
);

/** Splits a text into parts that match a term of the query, also in another form, and parts that do not. */
export function markTerms(text: string, query: string): MarkedPart[] {
  const stems = new Set(wordsOf(query).map(stem));
  if (stems.size === 0) return [{ text, isMatch: false }];
  return text
    .split(/([\p{L}\p{N}_]+)/u)
    .filter((part) => part !== "")
    .reduce<MarkedPart[]>((parts, part) => {
      const isMatch = part.length >= MIN_CHARS && stems.has(stem(part.toLowerCase()));
      const last = parts.at(-1);
      if (last && !last.isMatch && !isMatch) parts[parts.length - 1] = { text: last.text + part, isMatch: false };
      else parts.push({ text: part, isMatch });
      return parts;
    }, []);
}

function wordsOf(query: string): string[] {
  return (query.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []).filter((word) => word.length >= MIN_CHARS && !COMMON.has(word));
}

function stem(word: string): string {
  const short = word.replace(ENDINGS, "");
  return short.length >= MIN_CHARS ? short : word;
}
