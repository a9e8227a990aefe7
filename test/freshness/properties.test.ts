import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { checkTree } from "../../src/client/freshness/check-tree.ts";
import { gitFacts } from "../../src/client/freshness/git-facts.ts";
import { gitHistory } from "../../src/client/freshness/git-history.ts";
import { treeFiles } from "../../src/client/freshness/tree-files.ts";
import { anchorToIndex } from "../../src/freshness/anchor-to-index.ts";
import { checkIndex } from "../../src/freshness/check-index.ts";
import type { Anchor } from "../../src/model/anchor.ts";
import { sha256Hex, systemClock } from "../../src/model/ids.ts";
import { memoryStorage } from "../../src/stores/memory/storage.ts";
import { sampleSource, type TestRepository, testRepository } from "./repository.ts";

const NAMES = ["a", "b", "c"];
const pathOf = (name: string) => `src/${name}.js`;

type Step =
  | { readonly kind: "edit" | "rename" | "delete"; readonly name: string }
  | { readonly kind: "branch" | "merge" | "squash" | "rebase" | "switch" };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constantFrom("edit" as const, "rename" as const, "delete" as const), name: fc.constantFrom(...NAMES) }),
  fc.record({ kind: fc.constantFrom("branch" as const, "merge" as const, "squash" as const, "rebase" as const, "switch" as const) }),
);

/** Does a step in the repository. Steps that do not apply, such as an edit of a deleted file, do nothing. */
function perform(repository: TestRepository, { kind, ...rest }: Step, number: number): void {
  const { git } = repository;
  const branch = git("rev-parse", "--abbrev-ref", "HEAD");
  const other = branch === "main" ? "work" : "main";
  const branches = git("branch", "--format=%(refname:short)").split("\n");
  const path = "name" in rest ? currentPath(repository, rest.name) : undefined;
  if (kind === "edit" && path) repository.write(path, `${readFileSync(join(repository.root, path), "utf8")}// edit ${number}\n`);
  if (kind === "rename" && path) git("mv", path, path.replace(".js", `-${number}.js`));
  if (kind === "delete" && path) git("rm", "-q", path);
  if (kind === "edit" || kind === "rename" || kind === "delete") repository.commit(`${kind} ${number}`);
  if (kind === "branch" && !branches.includes("work")) git("checkout", "-q", "-b", "work");
  if (!branches.includes(other)) return;
  if (kind === "switch") git("checkout", "-q", other);
  if (kind === "merge") attempt(repository, ["merge", "-q", "--no-edit", other], ["merge", "--abort"]);
  if (kind === "rebase") attempt(repository, ["rebase", "-q", other], ["rebase", "--abort"]);
  if (kind === "squash" && attempt(repository, ["merge", "-q", "--squash", other], ["reset", "-q", "--hard"])) repository.commit("squash");
}

function attempt({ git }: TestRepository, command: readonly string[], undo: readonly string[]): boolean {
  try {
    git(...command);
    return true;
  } catch {
    git(...undo);
    return false;
  }
}

/** Finds the file of a name, whatever it was renamed to. */
function currentPath({ git }: TestRepository, name: string): string | undefined {
  return git("ls-files")
    .split("\n")
    .find((path) => path === pathOf(name) || path.startsWith(`src/${name}-`));
}

interface Saved {
  readonly path: string;
  readonly content: string;
  readonly commit: string;
  readonly branch: string;
  readonly anchors: readonly Anchor[];
}

/** Compares a record with the repository without any of the code under test. */
function bruteForce({ root, git }: TestRepository, { path, content, commit, branch }: Saved): string {
  const head = git("rev-parse", "HEAD");
  const here = git("rev-parse", "--abbrev-ref", "HEAD");
  const isIncluded = git("rev-list", head).split("\n").includes(commit);
  if (branch !== here && !isIncluded) {
    const tip = git("rev-parse", branch);
    return isContained({ git }, head, tip) || isContained({ git }, head, commit) ? "unknown" : "other_branch";
  }
  const files = git("ls-files").split("\n");
  if (files.includes(path)) return readFileSync(join(root, path), "utf8") === content ? "fresh" : "changed";
  const line = git("diff", "-M", "--name-status", commit, head)
    .split("\n")
    .find((one) => one.startsWith("R") && one.split("\t")[1] === path);
  return line ? "renamed" : "gone";
}

/** Returns whether a branch was merged as one commit with the same patch, or commit by commit. */
function isContained({ git }: Pick<TestRepository, "git">, head: string, tip: string): boolean {
  const base = git("merge-base", head, tip);
  const patch = (from: string, to: string) =>
    git("-c", "diff.renames=false", "diff", from, to)
      .replace(/^(?:index|@@).*$/gm, "")
      .replace(/\s/g, "");
  const commits = (to: string) => git("rev-list", "--no-merges", `${base}..${to}`).split("\n").filter(Boolean);
  const present = new Set(commits(head).map((one) => patch(`${one}^`, one)));

  const own = commits(tip);
  return (
    patch(base, tip) === "" || present.has(patch(base, tip)) || (own.length > 0 && own.every((one) => present.has(patch(`${one}^`, one))))
  );
}

describe("marks of the working tree", () => {
  const folder = mkdtempSync(join(tmpdir(), "cairn-facts-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const session = { readFile: treeFiles(), history: gitHistory(), limitMs: 60_000 };
  /** Finds the answers of git that earlier processes left. */
  const newProcess = () => ({ readFile: treeFiles(), history: gitHistory(gitFacts(folder)), limitMs: 60_000 });

  it("agree with a brute-force comparison after any edits, renames, deletions, branches, merges and rebases", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 6 }), async (steps) => {
        const repository = testRepository();
        try {
          for (const name of NAMES) repository.write(pathOf(name), sampleSource(name));
          repository.commit();
          const saved: Saved[] = [];
          for (const [number, one] of steps.entries()) {
            const name = NAMES[number % NAMES.length]!;
            const path = currentPath(repository, name);
            if (path) {
              const content = readFileSync(join(repository.root, path), "utf8");
              const commit = repository.git("rev-parse", "HEAD");
              const branch = repository.git("rev-parse", "--abbrev-ref", "HEAD");
              const anchors: Anchor[] = [
                { kind: "head", value: commit, branch },
                { kind: "file", value: path, hash: sha256Hex(content) },
              ];
              saved.push({ path, content, commit, branch, anchors });
            }
            perform(repository, one, number);
            const expected = saved.map((record) => bruteForce(repository, record));
            for (const deps of [session, newProcess(), newProcess()]) {
              const marks = await checkTree(deps, repository.root, saved);
              expect(marks.map(({ state }) => state)).toEqual(expected);
            }
          }
        } finally {
          repository.dispose();
        }
      }),
      { numRuns: 12 },
    );
  });
});

describe("marks of the code index", () => {
  const storage = memoryStorage();
  let project = 0;
  afterAll(() => storage.close());

  it("agree with the indexed files after any edits, renames, deletions and index runs", async () => {
    const change = fc.record({ kind: fc.constantFrom("edit", "rename", "delete", "index"), name: fc.constantFrom(...NAMES) });
    await fc.assert(
      fc.asyncProperty(fc.array(change, { maxLength: 12 }), async (changes) => {
        const { code } = await storage.create(`/property/${project++}`);
        const disk = new Map(NAMES.map((name) => [pathOf(name), sampleSource(name)]));
        let indexed = new Map<string, string>();
        const index = async () => {
          const gone = [...indexed].filter(([path]) => !disk.has(path));
          const renames = gone.flatMap(([from, content]) => {
            const to = [...disk].find(([path, text]) => text === content && !indexed.has(path))?.[0];
            return to === undefined ? [] : [{ from, to, contentHash: sha256Hex(content) }];
          });
          const removes = gone
            .map(([path, content]) => ({ path, contentHash: sha256Hex(content) }))
            .filter(({ path }) => !renames.some(({ from }) => from === path));
          const moved = new Set(renames.map(({ to }) => to));
          const files = [...disk]
            .filter(([path, content]) => indexed.get(path) !== content && !moved.has(path))
            .map(([path, content]) => ({
              path,
              contentHash: sha256Hex(content),
              language: "javascript",
              bytes: content.length,
              lines: 12,
              chunks: [],
              symbols: [],
            }));
          await code.commit({ at: systemClock(), renames, removes, files });
          indexed = new Map(disk);
        };
        await index();
        const saved = await anchorToIndex(
          code,
          NAMES.map((name) => ({ kind: "file" as const, value: pathOf(name) })),
        );
        const original = new Map(disk);
        for (const [number, { kind, name }] of changes.entries()) {
          const path = [...disk.keys()].find((one) => one === pathOf(name) || one.startsWith(`src/${name}-`));
          if (kind === "index") await index();
          if (path === undefined) continue;
          if (kind === "edit") disk.set(path, `${disk.get(path)}// ${number}\n`);
          if (kind === "delete") disk.delete(path);
          if (kind === "rename") {
            disk.set(`src/${name}-${number}.js`, disk.get(path)!);
            disk.delete(path);
          }
          const [marks] = await checkIndex(code, [{ anchors: saved, updatedAt: systemClock() }]);
          for (const mark of marks!) {
            const now = indexed.get(mark.value);
            if (now !== undefined) expect(mark.state).toBe(now === original.get(mark.value) ? "fresh" : "changed");
            else expect(["gone", "renamed"]).toContain(mark.state);
            if (mark.state === "renamed") expect(indexed.has(mark.to!)).toBe(true);
            if (mark.state === "gone") expect([...indexed.values()]).not.toContain(original.get(mark.value));
          }
        }
      }),
      { numRuns: 60 },
    );
  });
});
