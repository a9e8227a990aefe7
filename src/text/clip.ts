import type { Redact } from "./redact.ts";

/** Removes secrets, then shortens the text: half a secret would not be recognised. Removes characters that cannot be stored. */
export function clip(redact: Redact, text: string, limit: number): string {
  return shorten(clean(redact, text), limit);
}

/** Removes secrets, puts the text on one line and shortens it. */
export function clipLine(redact: Redact, text: string, limit: number): string {
  return shorten(clean(redact, text).replace(/\s+/g, " "), limit);
}

function clean(redact: Redact, text: string): string {
  return redact(text.replaceAll("\0", "").toWellFormed()).text.trim();
}

function shorten(text: string, limit: number): string {
  return (text.length <= limit ? text : `${text.slice(0, limit - 1)}…`).toWellFormed();
}
