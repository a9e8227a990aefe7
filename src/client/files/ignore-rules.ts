import { dirname, join, relative, sep } from "node:path";
import { gitDataFolder } from "../../files/git-repository.ts";
import { readRegularFile } from "../../files/regular-file.ts";
import { type IgnoreRule, readIgnoreRules } from "./ignore-pattern.ts";

/** The ignore rules that hold in one folder: its own, and those of the folders around it. */
export interface IgnoreRules {
  /** `name` is an entry of this folder. */
  ignores(name: string, isFolder: boolean): boolean;
  /** The rules of a folder in it, that folder's own files included. */
  into(name: string): Promise<IgnoreRules>;
}

/** Every entry counts: for a tree that is taken in whole on purpose. */
export const NO_RULES: IgnoreRules = { ignores: () => false, into: async () => NO_RULES };

/** `.cairnignore` stands above `.gitignore` of the same folder, so it can also take back what git ignores. */
const RULE_FILES = [".gitignore", ".cairnignore"];
/** What tools put into a project and no project means by its own code. Any rule file can take it back with `!`. */
const BUILT_IN = "node_modules/\n__pycache__/\n.venv/\n";
/** Every name in a folder is compared with every rule, so a larger file would make the walk slow; it is left out. */
const RULE_BYTES = 100_000;

/** The rules of one folder, and how many characters of a path from the top lead to it. */
interface Layer {
  readonly prefixChars: number;
  readonly rules: readonly IgnoreRule[];
}

/**
 * The rules at the root of a walk, as git has them: from the top of the repository down, and `.git/info/exclude`. A root
 * that is ignored itself was named on purpose, so what ignores it does not count inside.
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

/** `prefix` is the folder's path from where the rules start, empty or with a `/` at the end. */
async function rulesAt(folder: string, prefix: string, outer: readonly Layer[]): Promise<IgnoreRules> {
  const own = layer(prefix.length, ...RULE_FILES.map((file) => readRules(join(folder, file))));
  const layers = own.rules.length > 0 ? [...outer, own] : outer;
  return {
    ignores(name, isFolder) {
      // The last rule that matches decides, as in git: inner folders come after outer ones.
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
    return ""; // absent, unreadable, too large or not a regular file: no rules
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
