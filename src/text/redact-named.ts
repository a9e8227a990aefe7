import type { SecretRule } from "./redact-rules.ts";
import { isBasicCredential, isPlaceholder, isReference, looksLikePassphrase, looksLikePassword, looksRandom } from "./secret-looks.ts";

/** Words as people write them in names: `password`, `DB_PASSWORD`, `dbPassword`. */
const named = (...words: readonly string[]) =>
  words.flatMap((word) => [word, word.toUpperCase(), word.replace(/^[a-z]/, (letter) => letter.toUpperCase())]).join("|");

/** What may follow in the same name: `TOKEN_2`, `secretKey`, but not `tokenizer`. */
const REST_OF_NAME = "(?:[_A-Z0-9-][A-Za-z0-9_-]{0,24})?";
/** Quotes may be escaped, where the text is JSON inside JSON, or that inside a log line. */
const ASSIGNED = "\\\\{0,7}[\"'`]?\\s{0,3}(?::=|=>|={1,2}|:)\\s{0,3}";
/**
 * Matches as much as it can and never gives any of it back, as an atomic group does elsewhere. What follows a value cannot be part of it, so
 * a shorter one never fits; trying each would double the time that a file full of names takes.
 */
const whole = (characters: string, min: number, max: number) => `(?=(?<whole>${characters}{${min},${max}}))\\k<whole>`;
/** A quoted value may hold anything but quotes. One without quotes ends where a word does; a call or an index is no value. */
const QUOTED = `\\\\{0,7}["'\`])${whole("[^\"'`\\s\\\\]", 6, 300)}(?=\\\\{0,7}["'\`])`;
const QUOTED_WORDS = `\\\\{0,7}["'\`])${whole("[^\"'`\\r\\n\\\\]", 6, 100)}(?=\\\\{0,7}["'\`])`;
const BARE = `)${whole("[^\\s\"'`,;&()\\[\\]{}<>\\\\]", 6, 300)}(?=$|[\\s"'\`,;&)}\\\\\\]])`;

const assigned = (
  kind: string,
  hints: readonly string[],
  names: string,
  value: string,
  accept: (secret: string) => boolean,
): SecretRule => ({
  kind,
  hints,
  pattern: new RegExp(`(?<keep>(?:${names})${REST_OF_NAME}${ASSIGNED}${value}`, "g"),
  accept,
});

const PASSWORD_HINTS = ["ass", "ASS", "wd", "WD"];
const PASSWORD_NAMES = named("password", "passwd", "passphrase", "pwd");
const SECRET_HINTS = ["ecret", "ECRET", "oken", "OKEN", "ey", "EY", "redential", "REDENTIAL", "ookie", "OOKIE", "ebhook", "EBHOOK"];
const SECRET_NAMES = named(
  ...["secret", "token", "api_?key", "api-key", "access_?key", "auth_?key", "private_?key", "signing_?key", "encryption_?key"],
  ...["master_?key", "credential", "cookie", "webhook"],
).concat("|apiKey|accessKey|authKey|privateKey|signingKey|encryptionKey|masterKey");

const isKey = (secret: string) => looksRandom(secret, 16);

/** Secrets that only the text beside them gives away. */
export const NAMED_RULES: readonly SecretRule[] = [
  {
    kind: "url-password",
    hints: ["://"],
    // Up to the last @ before a slash, since passwords contain @ too. A port before a list of addresses is no password.
    pattern: /(?<keep>(?<=[A-Za-z0-9]):\/\/[^\s:/@?#"'`\\<>{}[]{0,100}:)[^\s/"'`\\<>{}]{1,200}(?=@[A-Za-z0-9.[-])/g,
    accept: (secret) => !isPlaceholder(secret) && !/^\d{1,5}[)\],;]/.test(secret),
  },
  {
    kind: "url-token",
    hints: ["://"],
    pattern: /(?<keep>(?<=[A-Za-z0-9]):\/\/)[A-Za-z0-9_-]{20,200}(?=(?::[A-Za-z0-9_-]{0,40})?@[A-Za-z0-9.[-])/g,
    accept: (secret) => looksRandom(secret, 20),
  },
  {
    kind: "password",
    hints: ["ass", "wd", "ASS", "WD"],
    pattern: /(?<keep>[?&;](?:password|passwd|pwd|Password|Pwd|PASSWORD|PWD) {0,2}= {0,2})[^\s&;"'`\\<>{}()]{1,200}/g,
    accept: (secret) => !isPlaceholder(secret),
  },
  {
    kind: "authorization",
    hints: ["uthorization"],
    pattern:
      /(?<keep>[Aa]uthorization\\{0,7}["'`]?\s{0,3}[:=]\s{0,3}\\{0,7}["'`]?(?:[A-Za-z][A-Za-z0-9-]{1,20} {1,2})?)[A-Za-z0-9._~+/=:-]{8,4000}/g,
    accept: (secret) => looksRandom(secret, 8) || isBasicCredential(secret),
  },
  {
    kind: "authorization",
    hints: ["earer ", "asic ", "EARER ", "ASIC "],
    pattern: /(?<keep>(?<![A-Za-z0-9])(?:[Bb]earer|[Bb]asic|BEARER|BASIC) {1,2})[A-Za-z0-9._~+/=-]{8,4000}/g,
    accept: (secret) => looksRandom(secret, 16) || isBasicCredential(secret),
  },
  {
    kind: "basic-auth",
    hints: ["_auth", '"auth', "'auth", "auth:"],
    pattern: /(?<keep>(?:_auth|["']auth["']?|\bauth)\s{0,3}[:=]\s{0,3}\\{0,7}["']?)[A-Za-z0-9+/]{6,1000}={0,2}(?![A-Za-z0-9+/=_.(-])/g,
    accept: isBasicCredential,
  },
  {
    kind: "cookie",
    hints: ["sess", "SESS", "Sess", "sid=", "auth=", "remember"],
    pattern: /(?<keep>(?:sess(?:ion)?(?:_?id)?|sid|SESSID|SESSIONID|SessionId|auth|remember(?:_token)?)=)[A-Za-z0-9%._~+/=|:-]{16,4000}/g,
    accept: isKey,
  },
  {
    kind: "xml-password",
    hints: ["assword>", "assphrase>", "ecret>", "piKey>", "rivateKey>", "oken>"],
    pattern: /(?<keep><(?:[Pp]assword|[Pp]assphrase|[Ss]ecret|apiKey|privateKey|[Tt]oken)>)[^<\r\n]{3,200}(?=<\/)/g,
    accept: (secret) => !isReference(secret) && !isPlaceholder(secret) && !/^(?:xs:|string|integer|\s)/.test(secret),
  },
  assigned("password", PASSWORD_HINTS, PASSWORD_NAMES, QUOTED, looksLikePassword),
  assigned("password", PASSWORD_HINTS, PASSWORD_NAMES, QUOTED_WORDS, (secret) => secret.includes(" ") && looksLikePassphrase(secret)),
  assigned("password", PASSWORD_HINTS, PASSWORD_NAMES, BARE, looksLikePassword),
  assigned("secret", SECRET_HINTS, SECRET_NAMES, QUOTED, isKey),
  assigned("secret", SECRET_HINTS, SECRET_NAMES, BARE, isKey),
];
