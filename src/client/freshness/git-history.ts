import { runGit } from "./git-command.ts";

/** Paths of one commit that have another name, or none, in a later one. */
export interface PathChanges {
  readonly renamed: ReadonlyMap<string, string>;
  readonly deleted: ReadonlySet<string>;
}

/** Questions about the commits of one repository. Answers never change, because they name commits; they are cached. */
export interface GitHistory {
  /** Compares two commits as `git diff -M` does. Undefined: one of them is missing, or git is. */
  changes(tree: string, from: string, to: string): Promise<PathChanges | undefined>;
  /** Returns whether a commit is part of the history of another. */
  includes(tree: string, head: string, commit: string): Promise<boolean | undefined>;
  /** Returns whether the changes of a commit since it left the history of `head` are in that history, as one commit or one by one. */
  containsPatch(tree: string, head: string, commit: string): Promise<boolean | undefined>;
  /** Returns the full ids of these commits, in order, and `undefined` for a missing one. */
  commits(tree: string, ids: readonly string[]): Promise<readonly (string | undefined)[]>;
}

/** Answers that are kept. */
const CACHED = 1_000;
/** Commits of a branch, or since it was left, that are compared by their patches. */
const PATCHES = 500;

const COMMIT = /^[0-9a-f]{7,64}$/;
const DIFF = ["--no-ext-diff", "--no-textconv", "--no-color", "--no-renames"];

export function gitHistory(): GitHistory {
  const cache = new Map<string, Promise<unknown>>();
  const cached = <T>(key: string, ask: () => Promise<T>): Promise<T> => {
    const known = cache.get(key);
    if (known) return known as Promise<T>;
    const answer = ask();
    cache.set(key, answer);
    if (cache.size > CACHED) cache.delete(cache.keys().next().value!);
    return answer;
  };
  const areCommits = (...ids: readonly string[]) => ids.every((id) => COMMIT.test(id));

  return {
    changes: async (tree, from, to) =>
      areCommits(from, to) ? cached(`changes ${tree} ${from} ${to}`, async () => parseChanges(await diffTree(tree, from, to))) : undefined,
    includes: async (tree, head, commit) =>
      areCommits(head, commit) ? cached(`includes ${tree} ${head} ${commit}`, () => isAncestor(tree, head, commit)) : undefined,
    containsPatch: async (tree, head, commit) =>
      areCommits(head, commit) ? cached(`patch ${tree} ${head} ${commit}`, () => hasPatch(tree, head, commit)) : undefined,
    async commits(tree, ids) {
      const output = await runGit(
        tree,
        ["cat-file", "--batch-check=%(objecttype) %(objectname)"],
        `${ids.filter((id) => areCommits(id)).join("\n")}\n`,
      );
      const lines = output?.split("\n") ?? [];
      let line = 0;
      return ids.map((id) => (areCommits(id) ? /^commit (\w+)$/.exec(lines[line++] ?? "")?.[1] : undefined));
    },
  };
}

function diffTree(tree: string, from: string, to: string): Promise<string | undefined> {
  return runGit(tree, ["diff-tree", "-r", "-z", "-M", "--name-status", "--diff-filter=RD", "--no-ext-diff", from, to]);
}

/** Reads the output of `git diff-tree -z --name-status`. */
function parseChanges(output: string | undefined): PathChanges | undefined {
  if (output === undefined) return undefined;
  const renamed = new Map<string, string>();
  const deleted = new Set<string>();
  const fields = output.split("\0");
  for (let at = 0; at + 1 < fields.length; ) {
    const status = fields[at]!;
    if (status.startsWith("R")) {
      renamed.set(fields[at + 1]!, fields[at + 2]!);
      at += 3;
    } else {
      if (status === "D") deleted.add(fields[at + 1]!);
      at += 2;
    }
  }
  return { renamed, deleted };
}

async function isAncestor(tree: string, head: string, commit: string): Promise<boolean | undefined> {
  const outside = await runGit(tree, ["rev-list", "--no-walk=unsorted", commit, "--not", head]);
  return outside === undefined ? undefined : outside.trim() === "";
}

/** Compares patch ids, which are equal for equal changes whatever their commits: a squash merge has the patch of the whole branch. */
async function hasPatch(tree: string, head: string, commit: string): Promise<boolean | undefined> {
  const base = (await runGit(tree, ["merge-base", head, commit]))?.trim();
  if (!base) return undefined;
  const [whole, branch, present] = await Promise.all([
    runGit(tree, ["diff-tree", "-r", "-p", ...DIFF, base, commit]),
    patchIds(tree, base, commit),
    patchIds(tree, base, head),
  ]);
  if (whole === undefined || !branch || !present) return undefined;
  const squashed = (await runGit(tree, ["patch-id", "--stable"], whole))?.split(" ")[0];
  if (squashed) return present.has(squashed) || (branch.size > 0 && [...branch].every((id) => present.has(id)));
  return whole.trim() === "" ? true : undefined;
}

async function patchIds(tree: string, base: string, tip: string): Promise<ReadonlySet<string> | undefined> {
  const commits = await runGit(tree, ["rev-list", "--no-merges", `--max-count=${PATCHES}`, `${base}..${tip}`]);
  if (commits === undefined) return undefined;
  const patches = await runGit(tree, ["diff-tree", "-r", "-p", "--root", "--stdin", ...DIFF], commits);
  const ids = patches === undefined ? undefined : await runGit(tree, ["patch-id", "--stable"], patches);
  return ids === undefined ? undefined : new Set(ids.split("\n").flatMap((line) => line.split(" ")[0] || []));
}
