import { redactSecrets } from "./redact.ts";

/** Errors quote values as JSON, and a log line quotes the error again. Deeper nesting is not looked into. */
const DEPTH_MAX = 3;

/**
 * Removes secrets from a message that is about to be stored or reported. Messages quote what they are about, so line ends and
 * quotes inside a quoted value are escaped; each quoted value is also redacted as the text that it stands for.
 */
export function redactMessage(message: string, redact: (text: string) => string = (text) => redactSecrets(text).text): string {
  return redact(redactQuoted(message, redact, DEPTH_MAX));
}

function redactQuoted(text: string, redact: (text: string) => string, depth: number): string {
  if (depth === 0 || !text.includes("\\")) return text;
  let clean = "";
  let done = 0;
  for (let open = text.indexOf('"'); open >= 0; open = text.indexOf('"', done)) {
    const close = closingQuote(text, open);
    if (close === undefined) break;
    const quoted = text.slice(open, close + 1);
    clean += text.slice(done, open) + redactLiteral(quoted, redact, depth);
    done = close + 1;
  }
  return clean + text.slice(done);
}

function redactLiteral(quoted: string, redact: (text: string) => string, depth: number): string {
  if (!quoted.includes("\\")) return quoted;
  let value: unknown;
  try {
    value = JSON.parse(quoted);
  } catch {
    return quoted; // not JSON
  }
  const clean = redact(redactQuoted(value as string, redact, depth - 1));
  return clean === value ? quoted : JSON.stringify(clean);
}

function closingQuote(text: string, open: number): number | undefined {
  for (let at = open + 1; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === '"') return at;
  }
  return undefined;
}
