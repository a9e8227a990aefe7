import { redactSecrets } from "../../text/redact.ts";

/** Removes secrets before the text is shortened: half a secret would not be recognised. Removes characters that cannot be stored. */
export function clip(text: string, limit: number): string {
  const clean = redactSecrets(text.replaceAll("\0", "").toWellFormed()).text.trim();
  return (clean.length <= limit ? clean : `${clean.slice(0, limit - 1)}…`).toWellFormed();
}

/** The same on one line. */
export function clipLine(text: string, limit: number): string {
  return clip(text, Number.MAX_SAFE_INTEGER).replace(/\s+/g, " ").slice(0, limit).toWellFormed().trim();
}
