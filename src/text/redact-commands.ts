import type { SecretRule } from "./redact-rules.ts";
import { isReference, looksLikePassword, looksRandom } from "./secret-looks.ts";

/** Matches an argument after `keep`: in quotes, which stay, or up to the end of the word. */
const argument = (keep: string, openQuote = `${keep}["']`) =>
  new RegExp(`(?<quoted>${openQuote})[^"'\\r\\n]{1,200}(?=["'])|(?<keep>${keep})[^\\s"'\`\\\\<>|;&()]{1,200}`, "g");

/** Programs inside a command line whose own options mean something else, such as a port. */
const OTHERS = "(?:ssh|scp|sftp|rsync|mkdir|psql|nc)";
/**
 * Matches a program and the start of its line up to an option. An attempt begins at a program's name, reads 200 characters at most and ends
 * at the next such name, where another one begins: a file full of names is read once and not 200 times.
 */
const optionOf = (programs: string, option: string) =>
  `(?<![\\w-])(?:${programs})\\s(?:(?:(?!\\s${OTHERS}\\s|[^\\w-](?:${programs})\\s)[^\\r\\n|;&]){0,200}?\\s)?${option}`;

const command = (programs: readonly string[], pattern: RegExp): SecretRule => ({
  kind: "command-password",
  hints: programs,
  pattern,
  accept: (secret) => !isReference(secret),
});

/** Programs that take a password as an option's value. */
const option = (programs: readonly string[], name: string): SecretRule => command(programs, argument(optionOf(programs.join("|"), name)));

/** A user's name before the password, and the same inside quotes. */
const USER = "[^\\s:[\"'`]{1,100}:";
const withUser = (programs: readonly string[], name: string): SecretRule => {
  const start = optionOf(programs.join("|"), name);
  return command(programs, argument(`${start}${USER}`, `${start}["']${USER}`));
};

/** Secrets on command lines and in the files of command-line programs. */
export const COMMAND_RULES: readonly SecretRule[] = [
  withUser(["curl"], "(?:-u|--user|--proxy-user|-U)(?:\\s{1,2}|=)?"),
  withUser(["http", "https", "xh"], "(?:-a|--auth)(?:\\s{1,2}|=)"),
  // With a space after -p these ask for the password, and the next word is a database.
  option(["mysql", "mysqldump", "mysqladmin", "mysqlimport", "mariadb", "mariadb-dump", "7z"], "-p"),
  option(["sshpass", "mongo", "mongosh", "mongodump", "mongorestore", "login", "cqlsh"], "-p\\s{0,2}"),
  option(["redis-cli"], "-a\\s{1,2}"),
  option(["ldapsearch", "ldapadd", "ldapmodify", "ldapwhoami", "ldapdelete"], "-w\\s{1,2}"),
  option(["sqlcmd", "bcp", "zip", "unzip"], "-P\\s{0,2}"),
  {
    kind: "command-password",
    hints: [" --"],
    pattern: argument("(?<=\\s)--(?:[a-z]{1,20}-){0,2}(?:password|passwd|passphrase|pass|token|secret|api-?key|secret-key)(?:\\s{1,2}|=)"),
    accept: (secret, before) =>
      /pass[a-z]{0,6}["'\s=]{1,3}$/.test(before.slice(-20)) ? looksLikePassword(secret) : looksRandom(secret, 12),
  },
  {
    kind: "command-password",
    hints: ["PASS", "_PWD=", "_AUTH="],
    pattern: argument(
      "(?<![A-Za-z0-9_])(?:PGPASSWORD|MYSQL_PWD|MYSQL_ROOT_PASSWORD|POSTGRES_PASSWORD|REDISCLI_AUTH|SSHPASS|RESTIC_PASSWORD|BORG_PASSPHRASE)=",
    ),
    accept: (secret) => !isReference(secret),
  },
  {
    kind: "command-password",
    hints: [" pass:", "requirepass", "masterauth", "SecureString"],
    pattern: argument(
      "(?:-pass(?:in|out)?\\s{1,2}pass:|(?:requirepass|masterauth)\\s{1,3}|ConvertTo-SecureString\\s{1,3}(?:-String\\s{1,3})?)",
    ),
    accept: (secret) => !isReference(secret) && !secret.startsWith("-"),
  },
  {
    kind: "netrc-password",
    hints: ["machine", "default"],
    pattern:
      /(?<keep>(?<![A-Za-z0-9])(?:machine\s{1,9}[^\s]{1,200}\s{1,9}(?:(?:login|user|account)\s{1,9}[^\s]{1,100}\s{1,9}){0,2}|default\s{1,9}(?:login|user)\s{1,9}[^\s]{1,100}\s{1,9})(?:password|passwd)\s{1,9})[^\s]{1,200}/g,
    accept: (secret) => !isReference(secret) && !/^(?:for|is|to|and|or|in|on|of|that|reset|protected)$/.test(secret),
  },
  {
    kind: "pgpass-password",
    hints: [":5432:", ":*:", ":5433:", ":6432:"],
    pattern:
      /(?<keep>(?<![^\s"'`])(?:[A-Za-z0-9.*-]{1,100}|\/[\w./-]{1,100}):(?:\*|5432|5433|6432):[^\s:]{1,64}:[^\s:]{1,64}:)(?:[^\s:\\"'`]|\\[:\\]){1,200}(?=$|[\s"'`])/g,
    accept: (secret) => !isReference(secret),
  },
  {
    kind: "kubernetes-secret",
    hints: ["kind: Secret", '"kind": "Secret"'],
    pattern: /(?<keep>\n[ \t]{1,12}["']?[\w.-]{1,100}["']?: {1,3}["']?)[^\s"',{}[\]|>]{4,8000}/g,
    accept: (secret, before) => !isReference(secret) && /^["']?(?:data|stringData)["']?:/.test(parentOf(before)),
  },
];

/** Returns the text of the nearest line above the last one that is indented less, without its indentation. */
function parentOf(before: string): string {
  const lines = before.split("\n");
  const indent = lines.at(-1)!.search(/\S/);
  return lines.findLast((line) => line.trim() !== "" && line.search(/\S/) < indent)?.trim() ?? "";
}
