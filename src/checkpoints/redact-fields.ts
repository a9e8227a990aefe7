import { LIMITS } from "../model/limits.ts";
import type { Redact } from "../text/redact.ts";

/** Secrets removed from a field before it was stored; never their values. */
export interface RedactedField {
  readonly kind: string;
  readonly field: string;
  readonly count: number;
}

export interface CheckpointFields {
  readonly summary?: string | undefined;
  readonly description?: string | undefined;
  readonly context?: Readonly<Record<string, string>> | undefined;
  readonly tags?: readonly string[] | undefined;
}

/** Removes secrets from every text of a checkpoint and reports them. A placeholder may be longer than its secret, so texts are cut to their limits again. */
export function redactFields<Fields extends CheckpointFields>(
  fields: Fields,
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
  const { summary, description, context, tags } = fields;
  const cleaned: Fields = {
    ...fields,
    ...(summary !== undefined && { summary: clean("summary", summary, LIMITS.summaryChars) }),
    ...(description !== undefined && { description: clean("description", description, LIMITS.descriptionChars) }),
    ...(context && { context: cleanContext(context, clean, redact) }),
    ...(tags && { tags: tags.map((tag) => clean("tags", tag, LIMITS.tagChars)) }),
  };
  return { fields: cleaned, redacted: [...counts.values()] };
}

function cleanContext(
  context: Readonly<Record<string, string>>,
  clean: (field: string, text: string, limit: number) => string,
  redact: Redact,
): Record<string, string> {
  const pairs: Record<string, string> = {};
  for (const [key, value] of Object.entries(context)) {
    const name = uniqueKey(pairs, clean("context", key, LIMITS.contextKeyChars));
    // A value such as `hunter2` is recognised as a secret only together with its key, `password`.
    const assigned = `${key}=`;
    const together = redact(assigned + value).text;
    const secretByName = redact(value).text === value && together !== assigned + value && together.startsWith(assigned);
    pairs[name] = secretByName
      ? clean("context", assigned + value, assigned.length + LIMITS.contextValueChars).slice(assigned.length)
      : clean("context", value, LIMITS.contextValueChars);
  }
  return pairs;
}

/** Returns a key that is not taken yet: two keys may be equal without their secrets, and both pairs are stored. */
function uniqueKey(pairs: Readonly<Record<string, string>>, name: string): string {
  for (let number = 1; ; number++) {
    const candidate = number === 1 ? name : `${cut(name, LIMITS.contextKeyChars - 4)} ${number}`;
    if (!Object.hasOwn(pairs, candidate)) return candidate;
  }
}

/** Cuts the text without splitting a surrogate pair. */
function cut(text: string, limit: number): string {
  const end = /[\ud800-\udbff]/.test(text[limit - 1] ?? "") ? limit - 1 : limit;
  return text.slice(0, end);
}
