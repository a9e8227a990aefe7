import type { SecretRule } from "./redact-rules.ts";

/** Words as people write them in names: `password`, `DB_PASSWORD`, `dbPassword`. */
const named = (...words: readonly string[]) =>
  words.flatMap((word) => [word, word.toUpperCase(), word.replace(/^[a-z]/, (letter) => letter.toUpperCase())]).join("|");

/** What may follow in the same name: `TOKEN_2`, `secretKey`, but not `tokenizer`. */
const REST_OF_NAME = "(?:[_A-Z0-9-][A-Za-z0-9_-]{0,24})?";
/** Quotes may be escaped, where the text is JSON inside JSON, or that inside a log line. */
const ASSIGNED = "\\\\{0,7}[\"'`]?\\s{0,3}(?::=|=>|={1,2}|:)\\s{0,3}";
/** A quoted value may hold anything but quotes. One without quotes ends where a word does; a call or an index is no value. */
const QUOTED = "\\\\{0,7}[\"'`])[^\"'`\\s\\\\]{6,300}(?=\\\\{0,7}[\"'`])";
const BARE = ")[^\\s\"'`,;&()\\[\\]{}<>\\\\]{6,300}(?=$|[\\s\"'`,;&)}\\\\\\]])";

const assigned = (kind: string, hints: readonly string[], names: string, accept: (secret: string) => boolean): SecretRule[] =>
  [QUOTED, BARE].map((value) => ({
    kind,
    hints,
    pattern: new RegExp(`(?<keep>(?:${names})${REST_OF_NAME}${ASSIGNED}${value}`, "g"),
    accept,
  }));

/** Secrets that only what stands beside them gives away. */
export const NAMED_RULES: readonly SecretRule[] = [
  {
    kind: "url-password",
    hints: ["://"],
    pattern:
      /(?<keep>(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{1,20}:\/\/[^\s:/@"'`\\<>{}]{0,100}:)[^\s@/"'`\\<>{}]{1,200}(?=@[A-Za-z0-9.[-])/g,
    accept: (secret) => !isPlaceholder(secret),
  },
  {
    kind: "authorization",
    hints: ["uthorization"],
    pattern:
      /(?<keep>[Aa]uthorization\\{0,7}["'`]?\s{0,3}[:=]\s{0,3}\\{0,7}["'`]?(?:[A-Za-z][A-Za-z0-9-]{1,20} {1,2})?)[A-Za-z0-9._~+/=:-]{8,4000}/g,
    accept: (secret) => looksRandom(secret, 8),
  },
  {
    kind: "authorization",
    hints: ["earer ", "asic ", "EARER ", "ASIC "],
    pattern: /(?<keep>(?<![A-Za-z0-9])(?:[Bb]earer|[Bb]asic|BEARER|BASIC) {1,2})[A-Za-z0-9._~+/=-]{16,4000}/g,
    accept: (secret) => looksRandom(secret, 16),
  },
  ...assigned("password", ["ass", "ASS", "wd", "WD"], named("password", "passwd", "passphrase", "pwd"), looksLikePassword),
  ...assigned(
    "secret",
    ["ecret", "ECRET", "oken", "OKEN", "ey", "EY", "redential", "REDENTIAL", "ookie", "OOKIE", "ebhook", "EBHOOK"],
    named(
      ...["secret", "token", "api_?key", "api-key", "access_?key", "auth_?key", "private_?key", "signing_?key", "encryption_?key"],
      ...["master_?key", "credential", "cookie", "webhook"],
    ).concat("|apiKey|accessKey|authKey|privateKey|signingKey|encryptionKey|masterKey"),
    (secret) => looksRandom(secret, 16),
  ),
];

/** Values that stand for one that is elsewhere, or for none. */
function isPlaceholder(value: string): boolean {
  return (
    /^(?:user|pass|guest|pw)$|^[$%<{[]|\$\{|\{\{|[*•]{3}|x{4}|\.{3}|…|%[sdv]$|(?:password|passwd)$/i.test(value) ||
    /^(?:your|my|the|example|placeholder|changeme|change_me|dummy|sample|redacted|password|passwd|secret|undefined|null|none|true|false|string|process\.env)/i.test(
      value,
    )
  );
}

/** An expression of a program, not a value: `request.body.password`, `config::SECRET`, `a->b`. */
const isExpression = (value: string) =>
  /^[A-Za-z_$][\w$]{0,60}Password$|^[A-Za-z_$][\w$]*(?:(?:\.|::|->|\?\.)[A-Za-z_$][\w$]*)+[!;?]?$/.test(value) || /^[@/.~]/.test(value);

/** People choose short passwords. What tells them from words and names is a digit or a sign among the letters. */
function looksLikePassword(value: string): boolean {
  if (isPlaceholder(value) || isExpression(value) || /^https?:\/\//.test(value)) return false;
  const letters = /[A-Za-z]/.test(value);
  return letters
    ? /\d|[!@#$%^&*?]/.test(value.slice(1)) && !/^[A-Za-z_]+\??$/.test(value)
    : /^\d{6,}$/.test(value) === false && /\d/.test(value);
}

/** Keys are made by machines: long, letters and digits mixed, no letter much more frequent than others. */
function looksRandom(value: string, minChars: number): boolean {
  if (value.length < minChars || isPlaceholder(value) || isExpression(value) || value.includes("://")) return false;
  const digits = value.replace(/\D/g, "").length;
  const turns = value.match(/[a-z][A-Z0-9]|[A-Z][0-9]|[0-9][A-Za-z]/g)?.length ?? 0;
  return digits >= 2 && turns >= 3 && entropyBits(value) >= (value.length >= 24 ? 3.3 : 2.9);
}

/** Shannon's entropy per character. */
function entropyBits(value: string): number {
  const counts = new Map<string, number>();
  for (const char of value) counts.set(char, (counts.get(char) ?? 0) + 1);
  let bits = 0;
  for (const count of counts.values()) bits -= (count / value.length) * Math.log2(count / value.length);
  return bits;
}
