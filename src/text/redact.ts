import { allowMatcher } from "./redact-allow.ts";
import { COMMAND_RULES } from "./redact-commands.ts";
import { NAMED_RULES } from "./redact-named.ts";
import { SECRET_RULES } from "./redact-rules.ts";

/** Secrets that were removed from a text; never their values. */
export interface RedactedKind {
  readonly kind: string;
  readonly count: number;
}

export interface Redacted {
  readonly text: string;
  readonly found: readonly RedactedKind[];
}

/** Removes secrets from a text before it is stored, embedded or logged. */
export type Redact = (text: string) => Redacted;

const RULES = [...SECRET_RULES, ...COMMAND_RULES, ...NAMED_RULES];

/** Characters before a secret that a rule may read. */
const BEFORE_CHARS = 2_000;

/** Every kind of secret, each once. */
export const SECRET_KINDS: readonly string[] = [...new Set(RULES.map(({ kind }) => kind))];

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

/** Redacts with every rule and no exception. */
export const redactSecrets: Redact = redactor();
