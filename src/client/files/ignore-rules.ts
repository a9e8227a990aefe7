import { dirname, join, relative, sep } from "node:path";
import { gitDataFolder } from "../../files/git-repository.ts";
import { readRegularFile } from "../../files/regular-file.ts";
import { type IgnoreRule, readIgnoreRules } from "./ignore-pattern.ts";

/** The ignore rules that apply in a folder: its own, and those of the folders above it. */
export interface IgnoreRules {
  /** `name` is an entry of this folder. */
  ignores(name: string, isFolder: boolean): boolean;
  /** Returns the rules of a subfolder, including its own rule files. */
  into(name: string): Promise<IgnoreRules>;
}

/** Rules that ignore nothing, for `include_ignored`. */
export const NO_RULES: IgnoreRules = { ignores: () => false, into: async () => NO_RULES };

/** In the order of precedence: `.cairnignore` can include again what the `.gitignore` of the same folder excludes. */
const RULE_FILES = [".gitignore", ".cairnignore"];
/** Folders that tools fill with code of others. A rule file can include them again with `!`. */
const BUILT_IN = "node_modules/\n__pycache__/\n.venv/\n";
/** Bytes of a rule file; a larger file is ignored. Every name is compared with every rule, so it would make the walk slow. */
const RULE_BYTES = 100_000;

/** The rules of one folder, and the number of characters of its path from the top of the repository. */
interface Layer {
  readonly prefixChars: number;
  readonly rules: readonly IgnoreRule[];
}

/**
 * Returns the rules at the root of a walk, as git applies them: from the top of the repository down, and `.git/info/exclude`. A root that is
 * ignored itself was requested explicitly, so the rules that ignore it do not apply inside.
 */
export async function ignoreRules(root: string): Promise<IgnoreRules> {
  const top = repositoryTop(root);
  const steps = top === undefined ? [] : relative(top, root).split(sep).filter(Boolean);
  let rules = await rulesAt(top ?? root, "", [layer(0, BUILT_IN, excludesOf(top))]);
  for (const step of steps) {
    if (rules.ignores(step, true)) return rulesAt(root, "", [layer(0, BUILT_IN)]);
    rules = await rules.into(step);
  }
  return rules;
}

/** `prefix` is the path of the folder from the top of the repository: empty, or with a `/` at the end. */
async function rulesAt(folder: string, prefix: string, outer: readonly Layer[]): Promise<IgnoreRules> {
  const own = layer(prefix.length, ...RULE_FILES.map((file) => readRules(join(folder, file))));
  const layers = own.rules.length > 0 ? [...outer, own] : outer;
  return {
    ignores(name, isFolder) {
      // The last matching rule decides, as in git: rules of inner folders come after those of outer folders.
      for (const { prefixChars, rules } of layers.toReversed()) {
        const path = prefix.slice(prefixChars) + name;
        const decisive = rules.findLast((rule) => (isFolder || !rule.foldersOnly) && rule.matches(path, name));
        if (decisive) return !decisive.negated;
      }
      return false;
    },
    into: (name) => rulesAt(join(folder, name), `${prefix}${name}/`, layers),
  };
}

const IGNORE_CASE = process.platform === "win32" || process.platform === "darwin";

function layer(prefixChars: number, ...texts: readonly string[]): Layer {
  return { prefixChars, rules: texts.flatMap((text) => readIgnoreRules(text, { ignoreCase: IGNORE_CASE })) };
}

function readRules(path: string): string {
  try {
    return readRegularFile(path, RULE_BYTES).toString("utf8");
  } catch {
    return ""; // absent, unreadable, too large or not a regular file
  }
}

function repositoryTop(start: string): string | undefined {
  for (let folder = start; ; folder = dirname(folder)) {
    if (gitDataFolder(folder) !== undefined) return folder;
    if (folder === dirname(folder)) return undefined;
  }
}

function excludesOf(top: string | undefined): string {
  const git = top === undefined ? undefined : gitDataFolder(top);
  return git === undefined ? "" : readRules(join(git, "info", "exclude"));
}
