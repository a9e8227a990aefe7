import { allowMatcher } from "./redact-allow.ts";
import { COMMAND_RULES } from "./redact-commands.ts";
import { NAMED_RULES } from "./redact-named.ts";
import { SECRET_RULES } from "./redact-rules.ts";

/** What was taken out of a text; never the value itself. */
export interface RedactedKind {
  readonly kind: string;
  readonly count: number;
}

export interface Redacted {
  readonly text: string;
  readonly found: readonly RedactedKind[];
}

/** Takes secrets out of texts, before anything is stored, embedded or logged. */
export type Redact = (text: string) => Redacted;

const RULES = [...SECRET_RULES, ...COMMAND_RULES, ...NAMED_RULES];

/** Characters before a secret that a rule may look at. */
const BEFORE_CHARS = 2_000;

/** Every kind there is, each once. */
export const SECRET_KINDS: readonly string[] = [...new Set(RULES.map(({ kind }) => kind))];

const NOTHING: readonly RedactedKind[] = [];

export interface RedactorOptions {
  /** Regular expressions of values that are no secrets here, such as keys of test accounts. */
  readonly allow?: readonly string[] | undefined;
  /** A secret of several lines leaves as many behind, so that the numbers of the lines after it stay right. */
  readonly keepLines?: boolean | undefined;
}

/** Returns a function that replaces secrets by marks such as `[redacted:github-token]`. Applying it twice changes nothing more. */
export function redactor({ allow = [], keepLines = false }: RedactorOptions = {}): Redact {
  const isAllowed = allowMatcher(allow);
  return (text) => {
    let clean = text;
    let counts: Map<string, number> | undefined;
    for (const { kind, hints, pattern, accept } of RULES) {
      if (!hints.some((hint) => clean.includes(hint))) continue;
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

/** With every rule and no exception. */
export const redactSecrets: Redact = redactor();
