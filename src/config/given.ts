import { join, resolve } from "node:path";
import { nearest } from "../text/nearest.ts";
import { SETTINGS, type Setting, settingByKey } from "./settings.ts";

export interface Origin {
  readonly source: "flag" | "environment" | "project file" | "user file" | "default";
  /** The flag, the variable or the path of the file. */
  readonly name: string;
}

/** A value that some source gives. */
export interface Given {
  readonly value: unknown;
  readonly origin: Origin;
}

/** Something wrong in a source: where, at which key, and what. */
export interface Problem {
  readonly where: string;
  readonly key: string;
  readonly problem: string;
}

export interface Place {
  readonly home: string;
  /** What relative paths in this source start from. */
  readonly folder: string;
  /** Set for a project file that the user has not trusted: only harmless keys count. */
  readonly untrusted?: boolean;
}

/** Variables that are not configuration: those of the test set-up. */
const NOT_CONFIGURATION = /^CAIRN_(TEST_|SOAK$)/;

export function fromFlags(flags: readonly (readonly [string, string, string])[], place: Place, problems: Problem[]): Map<string, Given> {
  const given = new Map<string, Given>();
  for (const [key, text, flag] of flags) {
    const setting = settingByKey.get(key);
    const origin: Origin = { source: "flag", name: flag };
    if (setting) take(given, setting, fromText(setting, text), origin, place, problems);
    else problems.push({ where: flag, key: "", problem: unknown("key", key, settingByKey.keys()) });
  }
  return given;
}

/** Reads the settings of the environment. Unknown CAIRN_ variables are no error: another version of Cairn may know them. */
export function fromEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  place: Place,
  problems: Problem[],
  unknownVariables: Problem[],
): Map<string, Given> {
  const given = new Map<string, Given>();
  for (const setting of SETTINGS) {
    // An empty variable is how containers say «not set».
    const name = setting.envNames.find((candidate) => env[candidate]);
    if (name !== undefined) take(given, setting, fromText(setting, env[name]!), { source: "environment", name }, place, problems);
  }
  const names = new Set(SETTINGS.flatMap((setting) => setting.envNames));
  for (const name of Object.keys(env))
    if (name.startsWith("CAIRN_") && !names.has(name) && !NOT_CONFIGURATION.test(name))
      unknownVariables.push({ where: "environment", key: "", problem: unknown("variable", name, names) });
  return given;
}

export function fromObject(
  content: Readonly<Record<string, unknown>>,
  origin: Origin,
  place: Place,
  problems: Problem[],
): Map<string, Given> {
  const given = new Map<string, Given>();
  const walk = (node: Readonly<Record<string, unknown>>, prefix: string) => {
    for (const [name, value] of Object.entries(node)) {
      const key = prefix + name;
      const setting = settingByKey.get(key);
      if (setting) take(given, setting, value, origin, place, problems);
      else if (!isGroup(key)) problems.push({ where: origin.name, key: "", problem: unknown("key", key, siblings(prefix)) });
      else if (typeof value === "object" && value !== null && !Array.isArray(value)) walk(value as Record<string, unknown>, `${key}.`);
      else problems.push({ where: origin.name, key, problem: `must be an object with ${siblings(`${key}.`).join(", ")}` });
    }
  };
  walk(content, "");
  return given;
}

const isGroup = (key: string) => SETTINGS.some((setting) => setting.key.startsWith(`${key}.`));

/** The keys that may stand where a wrong one was written: groups and settings under one prefix. */
function siblings(prefix: string): string[] {
  const under = SETTINGS.filter((setting) => setting.key.startsWith(prefix));
  return [...new Set(under.map((setting) => prefix + setting.key.slice(prefix.length).split(".")[0]))];
}

function unknown(what: string, given: string, known: Iterable<string>): string {
  const hint = nearest(given, known);
  return `unknown ${what} ${JSON.stringify(given.slice(0, 100))}${hint === undefined ? "" : `: did you mean ${JSON.stringify(hint)}?`}`;
}

/** Converts a text to the kind of its setting. A text that cannot be converted stays a text, and the schema reports what was expected. */
function fromText(setting: Setting, text: string): unknown {
  if (setting.kind === "number") return /^-?\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : text;
  if (setting.kind === "boolean") return BOOLEANS.get(text.trim().toLowerCase()) ?? text;
  if (setting.kind === "list")
    return text
      .split(",")
      .map((item) => item.trim())
      .filter(Boolean);
  return text;
}

const BOOLEANS = new Map([
  ["true", true],
  ["1", true],
  ["yes", true],
  ["on", true],
  ["false", false],
  ["0", false],
  ["no", false],
  ["off", false],
]);

function take(given: Map<string, Given>, setting: Setting, value: unknown, origin: Origin, place: Place, problems: Problem[]): void {
  const where = origin.name;
  if (place.untrusted && !setting.fromProject) {
    problems.push({ where, key: setting.key, problem: "needs a trusted project file" });
    return;
  }
  if (value === undefined) {
    problems.push({ where, key: setting.key, problem: "has no value" });
    return;
  }
  const parsed = setting.schema.safeParse(value);
  if (!parsed.success) {
    problems.push({ where, key: setting.key, problem: problemOf(setting, parsed.error.issues[0]?.message ?? "is not valid") });
    return;
  }
  given.set(setting.key, { value: setting.path ? absolute(parsed.data as string, place) : parsed.data, origin });
}

function problemOf(setting: Setting, message: string): string {
  if (setting.choices) return `must be ${setting.kind === "list" ? "a list of" : "one of"} ${setting.choices.join(", ")}`;
  return message.replace(/^Invalid input: /, "").replace(/^Too (small|big): /, "");
}

function absolute(path: string, { home, folder }: Place): string {
  if (path === "~" || path.startsWith("~/")) return join(home, path.slice(1));
  return resolve(folder, path);
}
