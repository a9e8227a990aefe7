import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, sep } from "node:path";
import { CairnError } from "../model/errors.ts";
import { camelKey } from "../operations/wire.ts";
import { readConfigFile } from "./file.ts";
import { fromEnvironment, fromFlags, fromObject, type Given, type Origin, type Place, type Problem } from "./given.ts";
import type { Config } from "./schema.ts";
import { SETTINGS, type Setting } from "./settings.ts";
import { isTrusted } from "./trust.ts";

/** What holds for one key, and why. */
export interface ResolvedSetting {
  readonly setting: Setting;
  /** `undefined` where nothing was given and there is no default. */
  readonly value: unknown;
  readonly origin: Origin;
}

export interface LoadedConfig {
  readonly config: Config;
  readonly settings: readonly ResolvedSetting[];
  /** What the project file says and what does not count, because the user has not trusted the file. */
  readonly ignored: readonly Problem[];
  /** CAIRN_ variables that no setting has. They are ignored with a warning. */
  readonly unknownVariables: readonly Problem[];
}

export interface LoadOptions {
  /** Values from the command line, as key and text: `["http.port", "8080", "--port"]`. */
  readonly flags?: readonly (readonly [key: string, text: string, flag: string])[] | undefined;
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** The folder whose `cairn.config.json` counts. */
  readonly projectDir?: string | undefined;
  readonly home?: string | undefined;
  readonly cwd?: string | undefined;
}

export const PROJECT_FILE = "cairn.config.json";
export const USER_FILE = join(".cairn", "config.json");

/** Flags before environment before project file before user file before defaults. Every source is checked whole, also where another one wins; a project file that is not trusted is never an error. */
export function loadConfig(options: LoadOptions = {}): LoadedConfig {
  const { flags = [], env = process.env, home = homedir(), cwd = process.cwd() } = options;
  const problems: Problem[] = [];
  const ignored: Problem[] = [];
  const unknownVariables: Problem[] = [];
  const projectFile = options.projectDir === undefined ? undefined : join(options.projectDir, PROJECT_FILE);
  const userFile = join(home, USER_FILE);
  const sources: ReadonlyMap<string, Given>[] = [
    fromFlags(flags, { home, folder: cwd }, problems),
    fromEnvironment(env, { home, folder: cwd }, problems, unknownVariables),
    projectFile === undefined ? new Map() : fromProjectFile(projectFile, home, problems, ignored),
    fromFile("user file", userFile, { home, folder: dirname(userFile) }, problems),
  ];
  if (problems.length > 0) refuse(problems);

  const settings = SETTINGS.map((setting): ResolvedSetting => {
    const given = sources.map((source) => source.get(setting.key)).find((found) => found !== undefined);
    if (given) return { setting, ...given };
    return {
      setting,
      value: defaultOf(setting, { home, cwd, env, projectDir: options.projectDir }),
      origin: { source: "default", name: "" },
    };
  });
  const resolved = withOpenAiKey(settings, env);
  const chosen = resolved.some(({ setting, origin }) => setting.key === "state_dir" && origin.source !== "default");
  const implicitStateDir = !chosen && env.NODE_ENV !== "production";
  const config = { ...nest(resolved), implicitStateDir } as Config;
  return { config, settings: resolved, ignored, unknownVariables };
}

function fromFile(source: Origin["source"], path: string, place: Place, problems: Problem[]): ReadonlyMap<string, Given> {
  const file = readConfigFile(path, problems);
  return file === undefined ? new Map() : fromObject(file.content, { source, name: path }, place, problems);
}

/**
 * A project file comes with the repository. Until the user trusts it, only harmless keys count, and nothing in it is an error: a cloned
 * repository must neither decide about memory nor be able to make memory unavailable.
 */
function fromProjectFile(path: string, home: string, problems: Problem[], ignored: Problem[]): ReadonlyMap<string, Given> {
  const file = readConfigFile(path, ignored);
  if (file === undefined) return new Map();
  const untrusted = !isTrusted(home, dirname(path), file.sha256, ignored);
  const place = { home, folder: dirname(path), untrusted };
  return fromObject(file.content, { source: "project file", name: path }, place, untrusted ? ignored : problems);
}

interface Where {
  readonly home: string;
  readonly cwd: string;
  readonly env: NonNullable<LoadOptions["env"]>;
  readonly projectDir: string | undefined;
}

function defaultOf(setting: Setting, { home, cwd, env, projectDir }: Where): unknown {
  if (setting.key === "data_dir") return join(home, ".cairn");
  if (setting.key === "state_dir") return env.NODE_ENV === "production" ? "/var/lib/cairn" : findStateDir(cwd, projectDir);
  return setting.fallback;
}

/** Returns the nearest `.state` folder between the current folder and the root of its project, so that subfolders see the systems too. */
function findStateDir(cwd: string, projectDir: string | undefined): string {
  const start = join(cwd, ".state");
  if (projectDir === undefined) return start;
  const inside = cwd === projectDir || cwd.startsWith(projectDir.endsWith(sep) ? projectDir : projectDir + sep);
  for (let folder = inside ? cwd : projectDir; ; folder = dirname(folder)) {
    if (existsSync(join(folder, ".state"))) return join(folder, ".state");
    if (folder === projectDir || folder === dirname(folder)) return start;
  }
}

/** The key that many people have in their environment is for OpenAI: it must not travel to any other service. */
function withOpenAiKey(settings: readonly ResolvedSetting[], env: NonNullable<LoadOptions["env"]>): readonly ResolvedSetting[] {
  const kind = settings.find(({ setting }) => setting.key === "embedder.kind")?.value;
  const key = env.OPENAI_API_KEY;
  if (kind !== "openai" || !key) return settings;
  return settings.map((resolved) =>
    resolved.setting.key === "embedder.api_key" && resolved.value === undefined
      ? { ...resolved, value: key, origin: { source: "environment", name: "OPENAI_API_KEY" } }
      : resolved,
  );
}

/** Returns the values as the code names them: `http.rate_limit` is `http.rateLimit`. */
function nest(settings: readonly ResolvedSetting[]): Record<string, unknown> {
  const root: Record<string, unknown> = {};
  for (const { setting, value } of settings) {
    const path = camelKey(setting.key).split(".");
    let node = root;
    for (const part of path.slice(0, -1)) {
      node[part] ??= {};
      node = node[part] as Record<string, unknown>;
    }
    node[path.at(-1)!] = value;
  }
  return root;
}

function refuse(problems: readonly Problem[]): never {
  const lines = problems.slice(0, 10).map(({ where, key, problem }) => `${where}: ${key ? `${key} ` : ""}${problem}`);
  throw new CairnError("invalid_input", `The configuration has a mistake. ${lines.join("; ")}`, {
    details: { issues: problems.slice(0, 10).map(({ where, key, problem }) => ({ source: where, field: key, problem })) },
  });
}
