import { dirname, join, relative, sep } from "node:path";
import ignore, { type Ignore } from "ignore";
import { gitDataFolder } from "../files/git-repository.ts";
import { readRegularFile } from "../files/regular-file.ts";

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
/** Bytes of a rule file; one above this is something else, and says nothing. */
const RULE_BYTES = 1_000_000;

/**
 * The rules at the root of a walk, as git has them: from the top of the repository down, and `.git/info/exclude`. A root
 * that is ignored itself was named on purpose, so what ignores it does not count inside.
 */
export async function ignoreRules(root: string): Promise<IgnoreRules> {
  const top = repositoryTop(root);
  const steps = top === undefined ? [] : relative(top, root).split(sep).filter(Boolean);
  let rules = await rulesAt(top ?? root, "", newIgnore().add(BUILT_IN).add(excludesOf(top)));
  for (const step of steps) {
    if (rules.ignores(step, true)) return rulesAt(root, "", newIgnore().add(BUILT_IN));
    rules = await rules.into(step);
  }
  return rules;
}

/** `prefix` is the folder's path from where the rules start, empty or with a `/` at the end. */
async function rulesAt(folder: string, prefix: string, outer: Ignore): Promise<IgnoreRules> {
  // One matcher for all rules, the inner ones last: the last that matches decides, as in git. It is made anew for each
  // folder because it remembers every path it was asked about.
  const matcher = newIgnore().add(outer);
  for (const file of RULE_FILES) matcher.add(rebase(readRules(join(folder, file)), prefix));
  return {
    ignores: (name, isFolder) => matcher.ignores(prefix + name + (isFolder ? "/" : "")),
    into: (name) => rulesAt(join(folder, name), `${prefix}${name}/`, matcher),
  };
}

function newIgnore(): Ignore {
  return ignore({ ignorecase: process.platform === "win32" || process.platform === "darwin", allowRelativePaths: true });
}

/** Makes the rules of a folder mean the same when they are read at the start of the rules. */
export function rebase(rules: string, prefix: string): string[] {
  const lines = rules.replace(/^\uFEFF/, "").split(/\r?\n/);
  if (prefix === "") return lines;
  const base = `/${prefix.replace(/[\\*?[\]!# ]/g, "\\$&")}`;
  return lines.flatMap((line) => {
    if (line.startsWith("#")) return [];
    const negated = line.startsWith("!");
    const pattern = negated ? line.slice(1) : line;
    const bare = pattern.trimEnd().replace(/\/$/, "");
    if (bare === "") return [];
    // A pattern with a slash before its end is tied to its folder; any other holds at every depth.
    const rebased = bare.includes("/") ? base + pattern.replace(/^\//, "") : `${base}**/${pattern}`;
    return [negated ? `!${rebased}` : rebased];
  });
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
