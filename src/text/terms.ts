import { once } from "../model/once.ts";
import { detectLanguage, isCommonWord, type Language, stem, wordLanguage } from "./language.ts";

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

/** Returns the distinct words of a query, without stop words unless there are no others. The limit bounds the cost of a pasted log. */
export function extractQueryTerms(query: string, max = QUERY_WORDS_MAX): string[] {
  const words = [...new Set(extractTerms(query))];
  const terms = words.filter((word) => !isCommonWord(word, "en"));
  return (terms.length > 0 ? terms : words).slice(0, max);
}

/**
 * Returns the terms that the full-text index stores for a record: stems of its language without diacritics, identifiers whole and in
 * parts, and overlapping pairs of characters for scripts without spaces. Both database engines store these terms as they are.
 */
export function recordTerms(text: string): string[] {
  const language = detectLanguage(text);
  return language === undefined ? indexTerms(text) : [...indexTerms(text, language), languageMarker(language)];
}

/** Returns the terms of code. Its words are English, or of the usual language of their script. */
export function codeTerms(text: string): string[] {
  return indexTerms(text);
}

function indexTerms(text: string, language?: Language): string[] {
  const terms: string[] = [];
  if (language === undefined && ASCII.test(text)) {
    for (const word of text.match(/[\w$]+/g) ?? []) for (const term of englishTerms(word)) terms.push(term);
    return terms;
  }
  for (const token of tokens(text)) {
    const term = termOf(token, language);
    terms.push(term);
    if (language === "vi" && token.kind === "word" && term !== token.text) terms.push(token.text); // tones distinguish its words
  }
  return terms;
}

/** The terms of recent words: texts repeat their words, and above all code does. */
const recent = new Map<string, readonly string[]>();
const RECENT_MAX = 20_000;
/** Longer words are data, and hardly occur twice. */
const RECENT_CHARS = 40;

/** Returns the terms of one word of ASCII characters. */
function englishTerms(word: string): readonly string[] {
  let terms = recent.get(word);
  if (!terms) {
    terms = [...wordTokens(word)].map((token) => termOf(token, undefined));
    if (recent.size >= RECENT_MAX) recent.clear();
    if (word.length <= RECENT_CHARS) recent.set(word, terms);
  }
  return terms;
}

/** Returns the term that marks a record of this language in the full-text index. A query needs the stems of all languages in it. */
export function languageMarker(language: Language): string {
  return `$lang_${language}`;
}

/** The languages that share their script with another, so that a query asks the full-text index for them. */
export const MARKED_LANGUAGES: readonly Language[] = [
  ...["da", "de", "es", "fi", "fr", "hu", "id", "it", "nl", "no", "pt", "ro", "sv", "tr", "uk", "vi"],
] as Language[];

const QUERY_WORDS_MAX = 64;

/**
 * Returns the terms to look up for each distinct word of a query: one per language that the index contains. Stop words of the query's
 * language are left out unless there are no others.
 */
export function queryTerms(query: string, indexed: readonly Language[] = []): string[][] {
  const asked = detectLanguage(query);
  const distinct = new Map<string, Token>();
  for (const token of tokens(query)) distinct.set(token.text, token);
  const all = [...distinct.values()];
  const telling = all.filter(({ text }) => !isCommonWord(text, wordLanguage(text, asked) ?? "en"));
  const known = new Set<string>();
  return (telling.length > 0 ? telling : all).slice(0, QUERY_WORDS_MAX).flatMap((token) => {
    const terms = [undefined, ...indexed].map((language) => termOf(token, language));
    if (indexed.includes("vi") && token.kind === "word") terms.push(token.text);
    const added = [...new Set(terms)].filter((term) => !known.has(term));
    for (const term of added) known.add(term);
    return added.length > 0 ? [added] : [];
  });
}

interface Token {
  /** Lower case. */
  readonly text: string;
  /** A `word` is stemmed. A `name` is an identifier, a `gram` a piece of a script without spaces. */
  readonly kind: "word" | "name" | "gram";
}

function termOf({ text, kind }: Token, textLanguage: Language | undefined): string {
  if (kind === "gram") return text;
  const language = kind === "word" ? wordLanguage(text, textLanguage) : undefined;
  return fold(language === undefined ? text : stem(text, language));
}

const ASCII = /^[\0-\x7f]*$/;
/** Scripts written without spaces between words, and Korean, whose words carry their particles. */
const unspaced = once(
  () =>
    /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}ー]/u,
);
const unspacedRuns = once(() => new RegExp(`(?:${unspaced().source}\\p{M}*)+|[^${unspaced().source.slice(1)}+`, "gu"));

function* tokens(text: string): Generator<Token> {
  const ascii = ASCII.test(text);
  const normal = ascii ? text : text.normalize("NFKC").replace(/\u0640|(?<=\p{Script=Arabic})\p{Mn}+/gu, "");
  for (const [run] of normal.matchAll(/[\p{L}\p{N}_$][\p{L}\p{N}\p{M}_$]*/gu)) {
    if (ascii || !unspaced().test(run)) yield* wordTokens(run);
    else for (const [part] of run.matchAll(unspacedRuns())) yield* unspaced().test(part) ? gramTokens(part) : wordTokens(part);
  }
}

function* wordTokens(word: string): Generator<Token> {
  const parts = identifierParts(word);
  const text = word.toLowerCase();
  if (parts.length === 1 && parts[0] === text) yield { text, kind: "word" };
  else {
    yield { text, kind: "name" };
    for (const part of parts) yield { text: part, kind: "word" };
  }
}

/** Scripts whose words are longer than two characters. */
const longWords = once(() => /[\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u);

/**
 * Yields each character with its marks and each pair of them: a pair is close to a word, and a character finds words of one. Thai and
 * similar scripts spell a syllable with several characters, so their pieces have two and three.
 */
function* gramTokens(run: string): Generator<Token> {
  const characters = run.match(/\P{M}\p{M}*/gu) ?? [run];
  const shortest = longWords().test(run) ? Math.min(2, characters.length) : 1;
  for (let start = 0; start < characters.length; start++)
    for (let length = shortest; length <= shortest + 1 && start + length <= characters.length; length++)
      yield { text: characters.slice(start, start + length).join(""), kind: "gram" };
}

/** Removes the diacritics of alphabets in which they only vary a letter. Vowel signs of other scripts stay. */
function fold(word: string): string {
  if (ASCII.test(word)) return word;
  if (/\p{Script=Arabic}/u.test(word))
    return word
      .replace(/[أإآٱ]/g, "ا")
      .replaceAll("ى", "ي")
      .replaceAll("ة", "ه");
  if (!/[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}]/u.test(word)) return word;
  return word
    .normalize("NFD")
    .replace(/\p{Mn}/gu, "")
    .normalize("NFC");
}

/** Returns whether a text may name a file, a symbol or a commit. A text that does not needs no closer look. */
export function mayNameCode(text: string): boolean {
  return /[/._`#(]|[a-z][A-Z]|[0-9a-f]{7}/.test(text);
}
