import { allowMatcher } from "./redact-allow.ts";
import { COMMAND_RULES } from "./redact-commands.ts";
import { NAMED_RULES } from "./redact-named.ts";
import { SECRET_RULES, type SecretRule } from "./redact-rules.ts";

/** Secrets that were removed from a text; never their values. */
export interface RedactedKind {
  readonly kind: string;
  readonly count: number;
}

export interface Redacted {
  readonly text: string;
  readonly found: readonly RedactedKind[];
}

/**
 * Removes secrets from a text before it is stored, embedded or logged. Applied by services before storage, by `searchRecords` to queries
 * and by `embedders/pipeline.ts`; see "Where redaction is applied" in docs/ARCHITECTURE.md.
 */
export type Redact = (text: string) => Redacted;

/** All rules, built with the first text: most commands redact none. */
function allRules(): readonly SecretRule[] {
  builtRules ??= [...SECRET_RULES, ...COMMAND_RULES, ...NAMED_RULES];
  return builtRules;
}
let builtRules: readonly SecretRule[] | undefined;

/** Characters before a secret that a rule may read. */
const BEFORE_CHARS = 2_000;

/** Returns every kind of secret, each once. */
export function secretKinds(): readonly string[] {
  return [...new Set(allRules().map(({ kind }) => kind))];
}

const NOTHING: readonly RedactedKind[] = [];

export interface RedactorOptions {
  /** Regular expressions of values that are not secret, such as keys of test accounts. */
  readonly allow?: readonly string[] | undefined;
  /** Keeps the number of lines: a secret of several lines is replaced by as many. */
  readonly keepLines?: boolean | undefined;
}

/** Returns a function that replaces secrets by placeholders such as `[redacted:github-token]`. It is idempotent. */
export function redactor({ allow = [], keepLines = false }: RedactorOptions = {}): Redact {
  const isAllowed = allowMatcher(allow);
  return (text) => {
    const pairsOfHints = hintPairs();
    let clean = text;
    let counts: Map<string, number> | undefined;
    let noted: string | undefined;
    for (const [index, { kind, hints, pattern, accept }] of allRules().entries()) {
      if (noted !== clean) notePairs(clean); // a placeholder has further pairs
      noted = clean;
      if (!hints.some((hint, place) => pairsOfHints[index]![place]!.every(isNoted) && clean.includes(hint))) continue;
      clean = clean.replace(pattern, (whole: string, ...rest) => {
        const groups = typeof rest.at(-1) === "object" ? (rest.pop() as { keep?: string; quoted?: string }) : {};
        const keep = groups.keep ?? groups.quoted ?? "";
        const secret = whole.slice(keep.length);
        const start = (rest.at(-2) as number) + keep.length;
        const before = (rest.at(-1) as string).slice(Math.max(0, start - BEFORE_CHARS), start);
        if (accept?.(secret, before) === false || isAllowed(secret)) return whole;
        counts ??= new Map();
        counts.set(kind, (counts.get(kind) ?? 0) + 1);
        return `${keep}[redacted:${kind}]${keepLines ? secret.replace(/[^\n]/g, "") : ""}`;
      });
    }
    return { text: clean, found: counts ? [...counts].map(([kind, count]) => ({ kind, count })) : NOTHING };
  };
}

/** Returns the pairs of characters in each hint of each rule. Commands that only read build none. */
function hintPairs(): readonly (readonly (readonly number[])[])[] {
  builtPairs ??= allRules().map(({ hints }) =>
    hints.map((hint) => [...hint].slice(1).map((char, index) => pairOf(hint.charCodeAt(index), char.charCodeAt(0)))),
  );
  return builtPairs;
}
let builtPairs: readonly (readonly (readonly number[])[])[] | undefined;

/** For each pair of characters, the number of the last text that has it. */
const pairs = new Uint32Array(1 << 14);
let textNumber = 0;

/** Notes the pairs of characters in a text. A text lacks most of the hints, and this is faster than a search for two hundred of them. */
function notePairs(text: string): void {
  if (textNumber === 0xffff_ffff) {
    pairs.fill(0);
    textNumber = 0;
  }
  textNumber++;
  for (let index = 1; index < text.length; index++) pairs[pairOf(text.charCodeAt(index - 1), text.charCodeAt(index))] = textNumber;
}

function isNoted(pair: number): boolean {
  return pairs[pair] === textNumber;
}

/** Returns one number for a pair of characters. Hints are ASCII; other characters share the numbers of those. */
function pairOf(first: number, second: number): number {
  return ((first & 127) << 7) | (second & 127);
}

/** Redacts with every rule and no exception. */
export const redactSecrets: Redact = redactor();

/** Secrets removed from a field before it was stored; never their values. */
export interface RedactedField {
  readonly kind: string;
  readonly field: string;
  readonly count: number;
}

/** Characters that a field may have: a text, or each item of a list; of a map, each key and each value. */
export type FieldLimits = Readonly<Record<string, number | { readonly key: number; readonly value: number }>>;

/** Removes secrets from the given fields of a record and reports them. A placeholder may be longer than its secret, so texts are cut to their limits again. */
export function redactFields<Fields extends object>(
  fields: Fields,
  limits: FieldLimits,
  redact: Redact,
): { fields: Fields; redacted: RedactedField[] } {
  const counts = new Map<string, RedactedField>();
  const clean = (field: string, text: string, limit: number): string => {
    const { text: without, found } = redact(text);
    for (const { kind, count } of found) {
      const key = `${field} ${kind}`;
      counts.set(key, { kind, field, count: (counts.get(key)?.count ?? 0) + count });
    }
    return without.length > limit ? cut(without, limit) : without;
  };
  const cleaned = { ...fields } as Record<string, unknown>;
  for (const [field, limit] of Object.entries(limits)) {
    const value = cleaned[field];
    if (value === undefined) continue;
    if (typeof limit === "object")
      cleaned[field] = redactPairs(value as Record<string, string>, limit, (...args) => clean(field, ...args), redact);
    else
      cleaned[field] = Array.isArray(value) ? value.map((item: string) => clean(field, item, limit)) : clean(field, value as string, limit);
  }
  return { fields: cleaned as Fields, redacted: [...counts.values()] };
}

/** The key under which hooks and agents store the session of a checkpoint. In a text, `session_id=…` may be a cookie; here it is an id. */
const SESSION_KEY = "session_id";

function redactPairs(
  map: Readonly<Record<string, string>>,
  limit: { readonly key: number; readonly value: number },
  clean: (text: string, limit: number) => string,
  redact: Redact,
): Record<string, string> {
  const pairs: Record<string, string> = {};
  for (const [key, value] of Object.entries(map)) {
    const name = uniqueKey(pairs, clean(key, limit.key), limit.key);
    // A value such as `hunter2` is recognised as a secret only together with its key, `password`.
    const assigned = `${key}=`;
    const together = key === SESSION_KEY ? assigned + value : redact(assigned + value).text;
    const secretByName = redact(value).text === value && together !== assigned + value && together.startsWith(assigned);
    pairs[name] = secretByName ? clean(assigned + value, assigned.length + limit.value).slice(assigned.length) : clean(value, limit.value);
  }
  return pairs;
}

/** Returns a key that is not taken yet: two keys may be equal without their secrets, and both pairs are stored. */
function uniqueKey(pairs: Readonly<Record<string, string>>, name: string, limit: number): string {
  for (let number = 1; ; number++) {
    const candidate = number === 1 ? name : `${cut(name, limit - 4)} ${number}`;
    if (!Object.hasOwn(pairs, candidate)) return candidate;
  }
}

/** Cuts the text without splitting a surrogate pair. */
function cut(text: string, limit: number): string {
  const end = /[\ud800-\udbff]/.test(text[limit - 1] ?? "") ? limit - 1 : limit;
  return text.slice(0, end);
}
