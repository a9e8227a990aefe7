import { redactSecrets } from "../text/redact.ts";
import { redactMessage } from "../text/redact-message.ts";

const PLACEHOLDER = "[redacted]";

/**
 * Values of headers, addresses and settings, whatever they look like; the rules for stored texts run after them. A request's
 * path reaches the log, so each pattern must take linear time: an attempt that fails may read a bounded number of characters only.
 */
const SECRETS: readonly (readonly [RegExp, string])[] = [
  // The id of a key may be known; its secret may not.
  [/\b(cairn_[0-9a-f]{12})_[A-Za-z0-9_-]{43}/g, `$1_${PLACEHOLDER}`],
  [/\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]+/gi, `$1 ${PLACEHOLDER}`],
  // JSON fields, also inside an escaped string.
  [
    /(\\?"(?:authorization|proxy-authorization|x-api-key|api_?key|password|passwd|secret|cookie|set-cookie)\\?"\s*:\s*\\?")(?:[^"\\]|\\(?!").)*/gi,
    `$1${PLACEHOLDER}`,
  ],
  // user:password@host in URLs, and key=value connection strings.
  [/(?<=[a-z0-9])(:\/\/[^\s:/@"'\\]{0,100}):(?!\d{1,5}[/?#])[^\s"'\\]{1,200}@/gi, `$1:${PLACEHOLDER}@`],
  [/\b(password|passwd|pwd|api_?key|access_token)=[^\s&;"'\\]+/gi, `$1=${PLACEHOLDER}`],
];

/** Removes keys, passwords and tokens from a log line or a message. */
export function redact(text: string): string {
  return redactMessage(text, redactText);
}

function redactText(text: string): string {
  let clean = text;
  for (const [secret, replacement] of SECRETS) clean = clean.replace(secret, replacement);
  return redactSecrets(clean).text;
}

/** Fields whose value is a secret whatever it looks like. */
const SECRET_FIELD = /^(?:authorization|proxy-authorization|x-api-key|api_?key|password|passwd|secret|cookie|set-cookie)$/i;

/** Removes secrets from a log line in JSON. A rule may take a secret to its end of the word, beyond the field; then each field is redacted alone. */
export function redactLine(line: string): string {
  const clean = redact(line);
  if (clean === line || isJson(clean) || !isJson(line)) return clean;
  const field = (name: string, value: unknown) =>
    typeof value !== "string" ? value : SECRET_FIELD.test(name) ? PLACEHOLDER : redact(value);
  return `${JSON.stringify(JSON.parse(line, field))}\n`;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
