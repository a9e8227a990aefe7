import { branchCommit, readHead } from "../../files/git-repository.ts";
import { formatAnchor, readAnchor } from "../../freshness/anchor-text.ts";
import { compareDefinition } from "../../freshness/definition-text.ts";
import { type AnchorCandidate, type AnchoredText, recogniseAnchors } from "../../freshness/recognise.ts";
import type { Anchor } from "../../model/anchor.ts";
import { LIMITS } from "../../model/limits.ts";
import type { GitHistory } from "./git-history.ts";
import { type ReadTreeFile, treePath } from "./tree-files.ts";

/** A record that is about to be saved: its texts, or the anchors that the caller gives instead. */
export interface UnanchoredRecord extends AnchoredText {
  readonly given?: readonly string[] | undefined;
}

/** Resolves the names of records to the code index of the working tree. Undefined: no index answers, and the service tries again. */
export type ResolveInIndex = (records: readonly (readonly string[])[]) => Promise<readonly (readonly Anchor[])[] | undefined>;

export interface TreeAnchorDeps {
  readonly readFile: ReadTreeFile;
  readonly history: GitHistory;
  readonly resolveInIndex: ResolveInIndex;
}

/**
 * Returns the anchors of records that are about to be saved, as texts for `anchors`: files with the hashes of their contents, symbols with
 * those of their definitions, commits and branches that exist, and what is checked out. Names in a text that are none of these are dropped.
 */
export async function anchorToTree(deps: TreeAnchorDeps, tree: string, records: readonly UnanchoredRecord[]): Promise<string[][]> {
  const { readFile, history } = deps;
  const candidates = records.map(({ given, ...text }) => (given ? given.map(readAnchor) : recogniseAnchors(text)));
  const ids = [...new Set(candidates.flat().flatMap(({ kind, value }) => (kind === "commit" ? [value] : [])))];
  const commits = new Map(ids.length > 0 ? (await history.commits(tree, ids)).map((commit, index) => [ids[index], commit] as const) : []);
  const found = candidates.map((own) => own.flatMap((candidate) => resolve(candidate) ?? (candidate.optional ? [] : [candidate])));
  const withSymbols = await resolveSymbols(deps, tree, found);
  const head = readHead(tree);
  const own: AnchorCandidate[] = head ? [{ kind: "head", value: head.commit, branch: head.branch }] : [];
  return withSymbols.map((anchors) => {
    const texts = [...own, ...anchors.filter(({ kind }) => kind !== "head" || !head)].map(formatAnchor);
    return [...new Set(texts)].filter(({ length }) => length <= LIMITS.anchorChars).slice(0, LIMITS.anchors);
  });

  function resolve(candidate: AnchorCandidate): AnchorCandidate | undefined {
    const { kind, value } = candidate;
    if (candidate.hash !== undefined || kind === "head" || kind === "symbol") return candidate;
    if (kind === "commit") {
      const commit = commits.get(value);
      return commit === undefined ? undefined : { kind, value: commit };
    }
    if (kind === "branch") return branchCommit(tree, value) === undefined ? undefined : { kind, value };
    const path = treePath(tree, value);
    const file = readFile(tree, path);
    return typeof file === "string" ? undefined : { kind, value: path, hash: file.hash };
  }
}

/** Replaces symbols by what the code index knows about them, as far as the working tree agrees with it. */
async function resolveSymbols(
  { readFile, resolveInIndex }: TreeAnchorDeps,
  tree: string,
  records: readonly (readonly AnchorCandidate[])[],
): Promise<readonly (readonly AnchorCandidate[])[]> {
  const named = records.flatMap((candidates, index) => (candidates.some(isOpenSymbol) ? [index] : []));
  const indexed = new Map<number, readonly Anchor[]>();
  for (let start = 0; start < named.length; start += LIMITS.anchorRecords) {
    const part = named.slice(start, start + LIMITS.anchorRecords);
    // Files are sent along: they decide which of several definitions is meant.
    const texts = part.map((index) => records[index]!.filter((one) => one.kind === "file" || isOpenSymbol(one)).map(formatAnchor));
    const answers = await resolveInIndex(texts);
    for (const [at, index] of part.entries()) if (answers?.[at]) indexed.set(index, answers[at]);
  }
  return records.map((candidates, index) => {
    const symbols = indexed.get(index)?.filter(({ kind }) => kind === "symbol");
    if (!symbols) return candidates;
    return candidates.flatMap((candidate) => {
      if (!isOpenSymbol(candidate)) return [candidate];
      const symbol = symbols.find(({ value, hash, path }) => value === candidate.value && hash !== undefined && isIn(candidate, path));
      return symbol ? asInTree(candidate, symbol) : candidate.optional ? [] : [candidate];
    });
  });

  /**
   * Returns the anchor of a symbol. The index may be older than the working tree, and then the definition that it knows is not the one that
   * the record describes: its file is anchored instead.
   */
  function asInTree(candidate: AnchorCandidate, symbol: Anchor): AnchorCandidate[] {
    const path = symbol.path!;
    const file = readFile(tree, path);
    if (file === "unreadable") return [symbol];
    if (file === "missing") return candidate.optional ? [] : [candidate];
    if (file.hash === symbol.content) return [symbol];
    const { generation: _, ...rest } = symbol;
    return compareDefinition(file.lines(), symbol) === "fresh"
      ? [{ ...rest, content: file.hash }]
      : [{ kind: "file", value: path, hash: file.hash }];
  }
}

function isOpenSymbol({ kind, hash }: AnchorCandidate): boolean {
  return kind === "symbol" && hash === undefined;
}

function isIn(candidate: AnchorCandidate, path: string | undefined): boolean {
  return candidate.path === undefined || candidate.path === path;
}
