import { GitLimitError, runGit } from "./git-command.ts";
import { type GitFact, type GitFacts, gitFacts } from "./git-facts.ts";

/** Questions about the commits of one repository, seen from a head. Answers are kept, because they name commits and never change. */
export interface GitHistory {
  /** Returns the paths of `from` that have another one in the head, as `git diff -M` finds them. Undefined: a commit is missing, or git is. */
  renames(tree: string, head: string, from: string): Promise<ReadonlyMap<string, string> | undefined>;
  /** Returns for each commit whether it is part of the history of the head; nothing for one that is missing. */
  includes(tree: string, head: string, commits: readonly string[]): Promise<ReadonlyMap<string, boolean>>;
  /** Returns whether the changes of a commit since it left the history of the head are in that history, as one commit or one by one. */
  containsPatch(tree: string, head: string, commit: string): Promise<boolean | undefined>;
  /** Returns the full ids of these commits, in order, and `undefined` for a missing one. */
  commits(tree: string, ids: readonly string[]): Promise<readonly (string | undefined)[]>;
}

/** Commits of a branch, or since it was left, that are compared by their patches. */
const PATCHES = 500;

const COMMIT = /^[0-9a-f]{7,64}$/;
const DIFF = ["--no-ext-diff", "--no-textconv", "--no-color", "--no-renames"];

export function gitHistory(facts: GitFacts = gitFacts()): GitHistory {
  const pending = new Map<string, Promise<GitFact | undefined>>();

  /** Returns facts that are known, and asks for the others at once. Callers that ask for the same fact meanwhile share the answer. */
  async function ask(
    { tree, head, kind, ids }: { readonly tree: string; readonly head: string; readonly kind: string; readonly ids: readonly string[] },
    run: (ids: readonly string[]) => Promise<ReadonlyMap<string, GitFact | undefined>>,
  ): Promise<ReadonlyMap<string, GitFact | undefined>> {
    const valid = COMMIT.test(head) ? [...new Set(ids)].filter((id) => COMMIT.test(id)) : [];
    const kept = facts.about(tree, head);
    const known = new Map(valid.map((id) => [id, kept.get(`${kind} ${id}`)] as const));
    const keyOf = (id: string) => `${kind} ${tree} ${head} ${id}`;
    const open = valid.filter((id) => known.get(id) === undefined && !pending.has(keyOf(id)));
    if (open.length > 0) {
      const answers = answer(open, run).then((found) => {
        const added = [...found].flatMap(([id, fact]) => (fact === undefined ? [] : [[`${kind} ${id}`, fact] as const]));
        if (added.length > 0) facts.add(tree, head, new Map(added));
        for (const id of open) pending.delete(keyOf(id));
        return found;
      });
      for (const id of open) {
        const one = answers.then((found) => found.get(id));
        pending.set(keyOf(id), one);
      }
    }
    const wanted = valid.map(async (id) => [id, known.get(id) !== undefined ? known.get(id) : await pending.get(keyOf(id))] as const);
    return new Map(await Promise.all(wanted));
  }

  return {
    async renames(tree, head, from) {
      const found = await ask(
        { tree, head, kind: "renames", ids: [from] },
        async () => new Map([[from, await readRenames(tree, from, head)]]),
      );
      const fact = found.get(from);
      return typeof fact === "object" && fact !== null ? new Map(Object.entries(fact)) : undefined;
    },
    async includes(tree, head, commits) {
      const found = await ask({ tree, head, kind: "includes", ids: commits }, (ids) => areAncestors(tree, head, ids));
      return new Map([...found].flatMap(([id, fact]) => (typeof fact === "boolean" ? [[id, fact] as const] : [])));
    },
    async containsPatch(tree, head, commit) {
      const found = await ask(
        { tree, head, kind: "patch", ids: [commit] },
        async () => new Map([[commit, await hasPatch(tree, head, commit)]]),
      );
      const fact = found.get(commit);
      return typeof fact === "boolean" ? fact : undefined;
    },
    commits: findCommits,
  };
}

/** Returns `null` for each fact if git exceeded a limit. */
async function answer(
  ids: readonly string[],
  run: (ids: readonly string[]) => Promise<ReadonlyMap<string, GitFact | undefined>>,
): Promise<ReadonlyMap<string, GitFact | undefined>> {
  try {
    return await run(ids);
  } catch (error) {
    return new Map(ids.map((id) => [id, error instanceof GitLimitError ? null : undefined]));
  }
}

async function findCommits(tree: string, ids: readonly string[]): Promise<readonly (string | undefined)[]> {
  const valid = ids.filter((id) => COMMIT.test(id));
  const output = await runGit(tree, ["cat-file", "--batch-check=%(objecttype) %(objectname)"], `${valid.join("\n")}\n`).catch(
    () => undefined,
  );
  const lines = output?.split("\n") ?? [];
  let line = 0;
  return ids.map((id) => (COMMIT.test(id) ? /^commit (\w+)$/.exec(lines[line++] ?? "")?.[1] : undefined));
}

async function readRenames(tree: string, from: string, to: string): Promise<Readonly<Record<string, string>> | undefined> {
  const output = await runGit(tree, ["diff-tree", "-r", "-z", "-M", "--name-status", "--diff-filter=R", "--no-ext-diff", from, to]);
  if (output === undefined) return undefined;
  const fields = output.split("\0");
  const renamed: [string, string][] = [];
  for (let at = 0; at + 2 < fields.length; at += 3) renamed.push([fields[at + 1]!, fields[at + 2]!]);
  return Object.fromEntries(renamed);
}

/** Asks for all commits in one call: the history of the others ends where that of the head begins. */
async function areAncestors(tree: string, head: string, ids: readonly string[]): Promise<ReadonlyMap<string, boolean | null>> {
  const existing = await findCommits(tree, [head, ...ids]);
  if (existing[0] === undefined) return new Map(); // git failed
  // Only commits that were found: one that a fetch brings meanwhile would count as included.
  const found = existing.slice(1).filter((commit) => commit !== undefined);
  const outside = found.length === 0 ? "" : await runGit(tree, ["rev-list", "--stdin"], `${found.join("\n")}\n^${head}\n`);
  if (outside === undefined) return new Map();
  const apart = new Set(outside.split("\n"));
  const isIncluded = (commit: string | undefined) => (commit === undefined ? null : !apart.has(commit));
  return new Map(ids.map((id, index) => [id, isIncluded(existing[index + 1])]));
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
