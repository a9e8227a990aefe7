import type { Redact } from "../../text/redact.ts";

/** Characters of a sentence that states a decision. Longer ones are rarely decisions. */
const MIN_CHARS = 20;
const MAX_CHARS = 300;
/** Sentences of one text that are examined. */
const SENTENCES = 2_000;

/** Words that state a decision. Each alternative is a fixed phrase, so a sentence is scanned in linear time. */
const DECIDED = new RegExp(
  `\\b(?:${[
    "decided (?:to|on|that|against)",
    "decision(?:s)? ?(?:is|was|:|-)",
    "(?:we|i) (?:chose|picked|settled on)",
    "(?:we'll|we will|i'll|i will|let's|let us) (?:use|keep|stick with|go with|switch to|avoid)",
    "(?:going|went) with",
    "from now on",
    "root cause (?:is|was)",
    "(?:must|should) (?:always|never|not)",
    "agreed (?:to|that|on)",
    "instead of using",
    "in favou?r of",
  ].join("|")})(?!\\w)`,
  "i",
);

/** Finds sentences that state a decision, by fixed phrases. Secrets are removed from the whole text first, because one may span sentences. */
export function findDecisions(text: string, redact: Redact): string[] {
  if (!DECIDED.test(text)) return [];
  const found: string[] = [];
  for (const sentence of sentences(redact(text).text)) {
    if (sentence.length >= MIN_CHARS && sentence.length <= MAX_CHARS && DECIDED.test(sentence)) found.push(sentence);
  }
  return [...new Set(found)];
}

/** Splits prose into sentences and list items. Code blocks are left out: their comments are no decisions of the session. */
function sentences(text: string): string[] {
  const found: string[] = [];
  let inCode = false;
  for (const line of text.split("\n")) {
    if (/^\s{0,3}(?:```|~~~)/.test(line)) inCode = !inCode;
    else if (!inCode) for (const part of line.split(/(?<=[.!?]) /)) found.push(plain(part));
    if (found.length >= SENTENCES) break;
  }
  return found;
}

/** Removes the marks of lists, headings and emphasis. */
function plain(part: string): string {
  return part
    .replace(/^[\s>#*+\-\d.)]{0,20}/, "")
    .replaceAll("**", "")
    .trim();
}
