import type { SecretRule } from "./redact-rules.ts";
import { isReference, looksLikePassword, looksRandom } from "./secret-looks.ts";

/** Matches an argument after `keep`: in quotes, which stay, or up to the end of the word. */
const argument = (keep: string, openQuote = `${keep}["']`) =>
  new RegExp(`(?<quoted>${openQuote})[^"'\\r\\n]{1,200}(?=["'])|(?<keep>${keep})[^\\s"'\`\\\\<>|;&()]{1,200}`, "g");

/** Programs that take a password as an option's value, by that option. A program after them in the line has its own options. */
const PROGRAMS: Readonly<Record<string, RegExp>> = {
  "-u": /^(?:curl|http|https|xh)$/,
  "-a": /^(?:redis-cli|http|https|xh)$/,
  "-p": /^(?:mysql|mysqldump|mysqladmin|mysqlimport|mariadb|mariadb-dump|sshpass|mongo|mongosh|mongodump|mongorestore|login|7z|cqlsh)$/,
  "-w": /^(?:ldapsearch|ldapadd|ldapmodify|ldapwhoami|ldapdelete|pppd)$/,
  "-P": /^(?:sqlcmd|bcp|isql|zip|unzip|tsql)$/,
};
/** Programs whose own `-p` or `-u` means something else, such as a port or a user. */
const OTHERS = /^(?:ssh|scp|sftp|rsync|mkdir|docker|podman|kubectl|sudo|su|ps|nc|psql|pg_dump|git|tar|cp|ls|cat|grep|id)$/;
/** Of these a `-p` with a space asks for the password, and the next word is a database. */
const ATTACHED_ONLY = /^(?:mysql|mysqldump|mysqladmin|mysqlimport|mariadb|mariadb-dump|7z)$/;

/** Returns the program whose option ends `before`: the nearest one in the line that is known here. */
function programOf(before: string): string | undefined {
  const line = before.slice(before.lastIndexOf("\n") + 1);
  const words = line.split(/[\s|;&()`"']+/).map((word) => word.slice(word.lastIndexOf("/") + 1));
  return words.findLast((word) => OTHERS.test(word) || Object.values(PROGRAMS).some((programs) => programs.test(word)));
}

const isOptionOf = (option: string) => (secret: string, before: string) => {
  const program = programOf(before);
  if (program === undefined || !PROGRAMS[option]!.test(program) || isReference(secret)) return false;
  return !(ATTACHED_ONLY.test(program) && /\s$/.test(before));
};

const option = (name: string, pattern: RegExp): SecretRule => ({
  kind: "command-password",
  hints: [` ${name}`],
  pattern,
  accept: isOptionOf(name),
});

/** A user's name before the password, and the same inside quotes. */
const USER = "[^\\s:[\"'`]{1,100}:";
const withUser = (start: string) => argument(`${start}${USER}`, `${start}["']${USER}`);

/** Secrets on command lines and in the files of command-line programs. */
export const COMMAND_RULES: readonly SecretRule[] = [
  option("-u", withUser("(?<=\\s)-u(?:\\s{1,2}|=)?")),
  option("-a", argument(`(?<=\\s)-a\\s{1,2}(?:${USER})?`)),
  option("-p", argument("(?<=\\s)-p\\s{0,2}")),
  option("-w", argument("(?<=\\s)-w\\s{1,2}")),
  option("-P", argument("(?<=\\s)-P\\s{0,2}")),
  {
    kind: "command-password",
    hints: ["--user", "--proxy-user"],
    pattern: withUser("(?<=\\s)--(?:proxy-)?user(?:\\s{1,2}|=)"),
    accept: (secret, before) => programOf(before) === "curl" && !isReference(secret),
  },
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
      /(?<keep>(?<![^\r\n"'`])(?:[A-Za-z0-9.*-]{1,100}|\/[\w./-]{1,100}):(?:\*|5432|5433|6432):[^\s:]{1,64}:[^\s:]{1,64}:)(?:[^\s:\\"'`]|\\[:\\]){1,200}(?=$|[\r\n"'`])/g,
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
