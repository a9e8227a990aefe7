import { redactSecrets } from "../text/redact.ts";
import { redactMessage } from "../text/redact-message.ts";

const PLACEHOLDER = "[redacted]";

/**
 * Values of headers, URLs and settings in any form; the rules for stored texts run after them. A request's path reaches the log, so
 * each pattern must take linear time: a failed attempt may read only a bounded number of characters.
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
export function redactForLog(text: string): string {
  return redactMessage(text, redactText);
}

function redactText(text: string): string {
  let clean = text;
  for (const [secret, replacement] of SECRETS) clean = clean.replace(secret, replacement);
  return redactSecrets(clean).text;
}

/** Fields whose value is always a secret. */
const SECRET_FIELD = /^(?:authorization|proxy-authorization|x-api-key|api_?key|password|passwd|secret|cookie|set-cookie)$/i;

/** Removes secrets from a log line in JSON. A match may extend past the JSON field; then each field is redacted separately. */
export function redactLine(line: string): string {
  const clean = redactForLog(line);
  if (clean === line || isJson(clean) || !isJson(line)) return clean;
  const field = (name: string, value: unknown) =>
    typeof value !== "string" ? value : SECRET_FIELD.test(name) ? PLACEHOLDER : redactForLog(value);
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
