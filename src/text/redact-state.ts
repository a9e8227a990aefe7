import { type Redact, type RedactorOptions, redactor } from "./redact.ts";

/** Options of redaction, and whether it also applies to states of runs and systems and to messages. */
export interface RedactionOptions extends Pick<RedactorOptions, "allow"> {
  readonly state?: boolean | undefined;
}

/** Returns the function that redacts states, or `undefined` when states are stored as they are. */
export function stateRedactor({ allow, state = false }: RedactionOptions = {}): ((value: unknown) => unknown) | undefined {
  if (!state) return undefined;
  const redact = redactor({ allow });
  return (value) => redactPlainData(value, redact);
}

/**
 * Replaces secrets in every text of plain data. The name of a property counts as the text before its value, since
 * `{ password: "hunter2x" }` is a secret only together. Names themselves, numbers, dates and bytes stay.
 */
export function redactPlainData(value: unknown, redact: Redact, name?: string): unknown {
  if (typeof value === "string") return redactNamed(value, redact, name);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => redactPlainData(item, redact, name));
  if (value instanceof Map)
    return new Map([...value].map(([key, item]) => [key, redactPlainData(item, redact, typeof key === "string" ? key : undefined)]));
  if (value instanceof Set) return new Set([...value].map((item) => redactPlainData(item, redact)));
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, redactPlainData(item, redact, key)]));
}

/** Redacts the value of a pair: by its own form, or by its name. */
export function redactNamed(value: string, redact: Redact, name: string | undefined): string {
  const { text } = redact(value);
  if (name === undefined || text !== value) return text;
  const start = `${name}=`;
  const together = redact(start + value).text;
  return together.startsWith(start) ? together.slice(start.length) : value;
}
