import { dirname, join, relative, sep } from "node:path";
import { gitDataFolder } from "../../files/git-repository.ts";
import { readRegularFile } from "../../files/regular-file.ts";
import { type IgnoreRule, readIgnoreRules } from "./ignore-pattern.ts";

/** The ignore rules that apply in a folder: its own, and those of the folders above it. */
export interface IgnoreRules {
  /** `name` is an entry of this folder. */
  ignores(name: string, isFolder: boolean): boolean;
  /** Returns the rule that ignores an entry, with its file: for a person who misses it in the index. */
  explain(name: string, isFolder: boolean): string | undefined;
  /** Returns the rules of a subfolder, including its own rule files. */
  into(name: string): Promise<IgnoreRules>;
}

/** Rules that ignore nothing, for `include_ignored`. */
export const NO_RULES: IgnoreRules = { ignores: () => false, explain: () => undefined, into: async () => NO_RULES };

/** In the order of precedence: `.cairnignore` can include again what the `.gitignore` of the same folder excludes. */
const RULE_FILES = [".gitignore", ".cairnignore"];
/** Folders that tools fill with code of others. A rule file can include them again with `!`. */
const BUILT_IN: RuleText = { source: "the built-in rules", text: "node_modules/\n__pycache__/\n.venv/\n" };
/** Bytes of a rule file; a larger file is ignored. Every name is compared with every rule, so it would make the walk slow. */
const RULE_BYTES = 100_000;

/** The rules of one folder, and the number of characters of its path from the top of the repository. */
interface Layer {
  readonly prefixChars: number;
  readonly rules: readonly SourcedRule[];
}

interface SourcedRule extends IgnoreRule {
  /** The file that has the rule. */
  readonly source: string;
}

interface RuleText {
  readonly source: string;
  readonly text: string;
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
  const own = layer(prefix.length, ...RULE_FILES.map((file) => ({ source: prefix + file, text: readRules(join(folder, file)) })));
  const layers = own.rules.length > 0 ? [...outer, own] : outer;

  /** Returns the last matching rule, which decides, as in git: rules of inner folders come after those of outer folders. */
  function decisive(name: string, isFolder: boolean): SourcedRule | undefined {
    for (const { prefixChars, rules } of layers.toReversed()) {
      const path = prefix.slice(prefixChars) + name;
      const found = rules.findLast((rule) => (isFolder || !rule.foldersOnly) && rule.matches(path, name));
      if (found) return found;
    }
    return undefined;
  }

  return {
    ignores: (name, isFolder) => decisive(name, isFolder)?.negated === false,
    explain(name, isFolder) {
      const rule = decisive(name, isFolder);
      return rule && `${rule.line} in ${rule.source}`;
    },
    into: (name) => rulesAt(join(folder, name), `${prefix}${name}/`, layers),
  };
}

const IGNORE_CASE = process.platform === "win32" || process.platform === "darwin";

function layer(prefixChars: number, ...texts: readonly RuleText[]): Layer {
  const read = ({ source, text }: RuleText) => readIgnoreRules(text, { ignoreCase: IGNORE_CASE }).map((rule) => ({ ...rule, source }));
  return { prefixChars, rules: texts.flatMap(read) };
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

function excludesOf(top: string | undefined): RuleText {
  const git = top === undefined ? undefined : gitDataFolder(top);
  return { source: ".git/info/exclude", text: git === undefined ? "" : readRules(join(git, "info", "exclude")) };
}
