import { CairnError } from "../model/errors.ts";
import { nearest } from "../text/nearest.ts";
import type { Flag } from "./command.ts";

/** Reads arguments into values by the kinds of the flags. The schema of the operation validates the values. */
export function parseArgv(args: readonly string[], flags: readonly Flag[], positional: readonly string[]): Record<string, unknown> {
  const byName = new Map(flags.map((flag) => [flag.name, flag]));
  const byShort = new Map(flags.flatMap((flag) => (flag.short ? [[flag.short, flag] as const] : [])));
  const values: Record<string, unknown> = {};
  const positionals: string[] = [];

  for (let index = 0; index < args.length; index++) {
    const argument = args[index]!;
    if (argument === "--") {
      positionals.push(...args.slice(index + 1));
      break;
    }
    if (argument === "-" || !argument.startsWith("-")) {
      positionals.push(argument);
      continue;
    }
    const { flag, negated, attached } = findFlag(argument, byName, byShort);
    if (flag.kind === "switch" || negated) {
      if (attached !== undefined) throw usage(`--${flag.name} takes no value. Write --${flag.name} or --no-${flag.name}.`);
      if (flag.kind === "switch") setValue(values, flag, !negated);
      else clearValue(values, flag);
      continue;
    }
    let text = attached;
    if (text === undefined) {
      text = args[++index];
      if (text === undefined) throw usage(`--${flag.name} needs a value: --${flag.name} <${placeholderOf(flag)}>.`);
      if (text.startsWith("--"))
        throw usage(
          `--${flag.name} needs a value, but ${quote(text)} follows. If that is the value, write --${flag.name}=${text.slice(0, 50)}`,
        );
    }
    setValue(values, flag, read(flag, text));
  }
  setPositional(
    values,
    positionals,
    positional.map((name) => byName.get(name)!),
  );
  return values;
}

/** Words of other tools for flags of Cairn. */
const FLAG_SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  since: ["created-from", "changed-since"],
  after: ["created-from"],
  from: ["created-from"],
  until: ["created-before"],
  before: ["created-before", "older-than"],
  message: ["summary"],
  title: ["summary"],
  body: ["description"],
  label: ["tags"],
  n: ["limit", "top-k"],
  count: ["limit", "top-k"],
  max: ["limit", "top-k"],
  limit: ["top-k"],
  "top-k": ["limit"],
  force: ["overwrite", "yes"],
  file: ["path"],
  line: ["start-line"],
  helped: ["success"],
  cwd: ["project"],
  dir: ["project"],
};

function findFlag(argument: string, byName: ReadonlyMap<string, Flag>, byShort: ReadonlyMap<string, Flag>) {
  if (!argument.startsWith("--")) {
    const flag = byShort.get(argument.slice(1, 2));
    if (!flag || argument.length > 2)
      throw usage(`Unknown flag ${quote(argument)}. A value that starts with a dash goes after "--" or as --flag=value.`);
    return { flag, negated: false, attached: undefined };
  }
  const equals = argument.indexOf("=");
  const name = argument.slice(2, equals === -1 ? undefined : equals);
  const attached = equals === -1 ? undefined : argument.slice(equals + 1);
  const flag = byName.get(name);
  if (flag) return { flag, negated: false, attached };
  const positive = name.startsWith("no-") ? byName.get(name.slice(3)) : undefined;
  if (positive && NEGATABLE.includes(positive.kind)) return { flag: positive, negated: true, attached };
  const synonym = (Object.hasOwn(FLAG_SYNONYMS, name) ? FLAG_SYNONYMS[name]! : []).find((candidate) => byName.has(candidate));
  const hint = synonym ?? nearest(name, byName.keys());
  throw usage(
    `Unknown flag ${quote(`--${name}`)}. ${hint === undefined ? "See the flags of the command with --help." : `Did you mean --${hint}?`}`,
  );
}

function read(flag: Flag, text: string): unknown {
  switch (flag.kind) {
    case "number":
      // Any other text is passed on, and the schema reports what it expected.
      return /^-?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : text;
    case "map": {
      const equals = text.indexOf("=");
      if (equals < 1) throw usage(`--${flag.name} takes key=value, not ${quote(text)}.`);
      return [text.slice(0, equals), text.slice(equals + 1)];
    }
    case "json":
      try {
        return JSON.parse(text);
      } catch {
        throw usage(`--${flag.name} takes JSON; ${quote(text)} is not valid JSON.`);
      }
    default:
      return text;
  }
}

/** Kinds of flags with a `--no-` form: for lists and maps it means none, so that an update can clear them. */
const NEGATABLE: readonly Flag["kind"][] = ["switch", "list", "map"];

function clearValue(values: Record<string, unknown>, flag: Flag): void {
  if (values[flag.name] !== undefined) throw usage(`--no-${flag.name} cannot be combined with --${flag.name}.`);
  values[flag.name] = flag.kind === "list" ? [] : {};
}

function setValue(values: Record<string, unknown>, flag: Flag, value: unknown): void {
  const before = values[flag.name];
  if (flag.kind === "list") {
    values[flag.name] = [...((before as unknown[]) ?? []), value];
  } else if (flag.kind === "map") {
    const [key, text] = value as [string, string];
    const map = (before ?? Object.create(null)) as Record<string, string>;
    if (key in map) throw usage(`--${flag.name} repeats the key ${quote(key)}.`);
    values[flag.name] = Object.assign(map, { [key]: text });
  } else {
    if (before !== undefined && flag.kind !== "switch") throw usage(`--${flag.name} may be given only once.`);
    values[flag.name] = value;
  }
}

function setPositional(values: Record<string, unknown>, free: readonly string[], positional: readonly Flag[]): void {
  let next = 0;
  for (const flag of positional) {
    if (next >= free.length) return;
    if (flag.kind === "list") for (; next < free.length; next++) setValue(values, flag, free[next]);
    else setValue(values, flag, read(flag, free[next++]!));
  }
  if (next >= free.length) return;
  const hint = positional.length > 0 ? " Put text with spaces in quotes." : "";
  throw usage(`Unexpected argument ${quote(free[next]!)}.${hint}`);
}

export function placeholderOf(flag: Flag): string {
  if (flag.placeholder) return flag.placeholder;
  if (flag.choices && flag.choices.length <= 4) return flag.choices.join("|");
  return { text: "text", number: "number", switch: "", list: "text", map: "key=value", json: "json" }[flag.kind];
}

export function usage(message: string): CairnError {
  return new CairnError("invalid_input", message);
}

function quote(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}
