import { CairnError } from "../model/errors.ts";
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

const RULES = [...SECRET_RULES, ...NAMED_RULES];

/** Every kind there is, each once. */
export const SECRET_KINDS: readonly string[] = [...new Set(RULES.map(({ kind }) => kind))];

const NOTHING: readonly RedactedKind[] = [];

export interface RedactorOptions {
  /** Regular expressions of values that are no secrets here, such as keys of test accounts. */
  readonly allow?: readonly string[] | undefined;
  /** A secret of several lines leaves as many behind, so that the numbers of the lines after it stay right. */
  readonly keepLines?: boolean | undefined;
}

export function redactor({ allow = [], keepLines = false }: RedactorOptions = {}): Redact {
  const allowed = allow.map(compiled);
  return (text) => {
    let clean = text;
    let counts: Map<string, number> | undefined;
    for (const { kind, hints, pattern, accept } of RULES) {
      if (!hints.some((hint) => clean.includes(hint))) continue;
      clean = clean.replace(pattern, (...match) => {
        const whole = match[0] as string;
        const keep = (match.at(-1) as { keep?: string } | undefined)?.keep ?? "";
        const secret = whole.slice(keep.length);
        if (accept?.(secret) === false || allowed.some((one) => one.test(secret))) return whole;
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

function compiled(pattern: string): RegExp {
  try {
    return new RegExp(pattern);
  } catch (cause) {
    throw new CairnError("invalid_input", `redaction.allow: ${JSON.stringify(pattern.slice(0, 100))} is not a regular expression.`, {
      cause,
    });
  }
}
