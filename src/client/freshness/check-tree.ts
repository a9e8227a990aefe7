import { branchCommit, type GitHead, readHead } from "../../files/git-repository.ts";
import { pathOf } from "../../freshness/check-index.ts";
import { compareDefinition } from "../../freshness/definition-text.ts";
import { type BranchMark, judge } from "../../freshness/judge.ts";
import type { Anchor, Anchored, AnchorMark, Freshness } from "../../model/anchor.ts";
import type { GitHistory } from "./git-history.ts";
import type { ReadTreeFile } from "./tree-files.ts";

export interface TreeCheckDeps {
  readonly readFile: ReadTreeFile;
  readonly history: GitHistory;
  /** Milliseconds that one answer may take. What is not known by then is `unknown`; git continues, and the next answer has it. */
  readonly limitMs: number;
}

/** Answers of git about one record; each is absent if it is not needed, and `undefined` if it is not known yet. */
interface Questions {
  readonly branch: (() => BranchMark | undefined) | undefined;
  /** Renames since the record was saved: without them a missing file may be renamed. */
  readonly renames: (() => ReadonlyMap<string, string> | undefined) | undefined;
}

/**
 * Anchors of one answer that are compared whatever the clock says: reading as many files takes a few milliseconds. On a busy machine the
 * time may be up although nothing was done yet.
 */
const ALWAYS_COMPARED = 64;

type State = Pick<AnchorMark, "state" | "to">;
const UNKNOWN: State = { state: "unknown" };

/**
 * Compares the anchors of records with the working tree and with git. A record that was saved on another branch, whose commit is not part
 * of the current history, is not compared: its files are as they were there.
 */
export async function checkTree(
  { readFile, history, limitMs }: TreeCheckDeps,
  tree: string,
  records: readonly Pick<Anchored, "anchors" | "freshness">[],
): Promise<Freshness[]> {
  const deadline = performance.now() + limitMs;
  const head = readHead(tree);
  const pending: Promise<unknown>[] = [];
  /** Starts a question to git, whose answer is there after the wait below, or not. */
  const ask = <T>(question: Promise<T>): (() => T | undefined) => {
    let answer: T | undefined;
    const keep = (value: T) => {
      answer = value;
    };
    pending.push(question.then(keep));
    return () => answer;
  };
  const elsewhere = records.map(({ anchors }) => savedElsewhere(anchors, head));
  const named = records.flatMap(({ anchors }) => anchors.filter(({ kind }) => kind === "commit"));
  const commits = [...named, ...elsewhere.flatMap((saved) => saved ?? [])].map(({ value }) => value);
  // One call of git answers for all records.
  const included = head && commits.length > 0 ? ask(history.includes(tree, head.commit, commits)) : () => undefined;
  const questions = records.map(({ anchors }, index) => questionsOf(anchors, elsewhere[index]));
  await settle(pending, deadline);
  let compared = 0;
  return records.map((record, index) => {
    const branchMark = questions[index]!.branch?.();
    const marks = branchMark
      ? []
      : record.anchors.flatMap((anchor) => {
          if (anchor.kind === "head") return [];
          const isLate = compared++ >= ALWAYS_COMPARED && performance.now() > deadline;
          const state = isLate ? UNKNOWN : stateOf(anchor, record, questions[index]!);
          return [{ kind: anchor.kind, value: anchor.value, ...state }];
        });
    return judge(record, { marks, checked: "working_tree", branch: branchMark });
  });

  function questionsOf(anchors: readonly Anchor[], saved: Anchor | undefined): Questions {
    const start = anchors.find(({ kind }) => kind === "head");
    const isMissing = anchors.some((anchor) => pathOf(anchor) !== undefined && readFile(tree, pathOf(anchor)!) === "missing");
    const moved = start && head && start.value !== head.commit;
    const renames = moved && isMissing ? ask(history.renames(tree, head.commit, start.value)) : undefined;
    return { branch: saved && head ? askBranch(saved, head) : undefined, renames };
  }

  /** Asks whether the commit of a record is part of the current history and, if not, whether its branch exists and was merged otherwise. */
  function askBranch(saved: Anchor, { commit }: GitHead): () => BranchMark | undefined {
    const name = saved.branch;
    const tip = name === undefined ? undefined : branchCommit(tree, name);
    const contained = ask(tip === undefined ? Promise.resolve(undefined) : isContained(commit, tip, saved.value));
    return () => {
      const isIncluded = included()?.get(saved.value);
      if (isIncluded === true) return undefined;
      if (isIncluded === undefined) return { state: "unknown", reason: included() ? missingText(saved) : "not checked in time" };
      if (name === undefined) return { state: "unknown", reason: `saved at ${saved.value.slice(0, 7)}, outside this history` };
      if (tip === undefined) return { state: "unknown", reason: `saved on ${name}, which is gone` };
      if (contained() === undefined) return { state: "unknown", reason: "not checked in time" };
      if (contained() === true) return { state: "unknown", reason: `saved on ${name}, whose changes are merged` };
      return { state: "other_branch", reason: `saved on ${name}, not merged` };
    };
  }

  async function isContained(commit: string, tip: string, saved: string): Promise<boolean | undefined> {
    // Most records are part of the history, and their patches need not be compared.
    if ((await history.includes(tree, commit, [saved])).get(saved) !== false) return undefined;
    const whole = await history.containsPatch(tree, commit, tip);
    return whole === true || saved === tip ? whole : ((await history.containsPatch(tree, commit, saved)) ?? whole);
  }

  function stateOf(anchor: Anchor, record: Pick<Anchored, "freshness">, { renames }: Questions): State {
    if (anchor.kind === "branch") return { state: branchCommit(tree, anchor.value) === undefined ? "unknown" : "fresh" };
    if (anchor.kind === "commit") return { state: included()?.get(anchor.value) === true ? "fresh" : "unknown" };
    const path = pathOf(anchor);
    if (path === undefined || anchor.hash === undefined) return UNKNOWN;
    const file = readFile(tree, path);
    if (file === "unreadable") return UNKNOWN;
    if (file !== "missing") return compareFile(anchor, file, undefined);
    // The index may know a rename that is not committed.
    const indexed = record.freshness?.anchors.find(({ kind, value }) => kind === anchor.kind && value === anchor.value)?.to;
    const to = renames?.()?.get(path) ?? indexed;
    const target = to === undefined ? undefined : readFile(tree, to);
    if (to !== undefined && typeof target === "object") return compareFile(anchor, target, to);
    return renames && renames() === undefined ? UNKNOWN : { state: "gone" };
  }

  function compareFile(anchor: Anchor, file: Exclude<ReturnType<ReadTreeFile>, string>, to: string | undefined): State {
    if (anchor.kind === "file")
      return to === undefined ? { state: file.hash === anchor.hash ? "fresh" : "changed" } : { state: "renamed", to };
    const state = file.hash === anchor.content ? "fresh" : compareDefinition(file.lines(), anchor);
    return state === "fresh" && to !== undefined ? { state: "renamed", to } : { state };
  }
}

/** Returns the head of a record that was saved on another branch, or on none, at another commit than the current one. */
function savedElsewhere(anchors: readonly Anchor[], head: GitHead | undefined): Anchor | undefined {
  const saved = anchors.find(({ kind }) => kind === "head");
  if (!saved || !head || saved.value === head.commit) return undefined;
  return saved.branch === undefined || saved.branch !== head.branch ? saved : undefined;
}

function missingText({ value, branch }: Anchor): string {
  return `saved at ${value.slice(0, 7)}${branch === undefined ? "" : ` on ${branch}`}, which git did not find`;
}

/** Waits until all questions are answered or the time is up. */
async function settle(pending: readonly Promise<unknown>[], deadline: number): Promise<void> {
  if (pending.length === 0) return;
  // Without time left only cached answers count, which are there before the next turn of the event loop.
  if (performance.now() >= deadline) return new Promise((resolve) => setImmediate(resolve));
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, Math.max(0, deadline - performance.now()));
  });
  await Promise.race([Promise.all(pending), late]);
  clearTimeout(timer);
}
