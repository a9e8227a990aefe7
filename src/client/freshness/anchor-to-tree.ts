import { branchCommit, readHead } from "../../files/git-repository.ts";
import { formatAnchor, readAnchor } from "../../freshness/anchor-text.ts";
import { type AnchorCandidate, type AnchoredText, recogniseAnchors } from "../../freshness/recognise.ts";
import { LIMITS } from "../../model/limits.ts";
import type { GitHistory } from "./git-history.ts";
import { type ReadTreeFile, treePath } from "./tree-files.ts";

export interface TreeAnchorDeps {
  readonly readFile: ReadTreeFile;
  readonly history: GitHistory;
}

/**
 * Returns the anchors of a record that is about to be saved, as texts for `anchors`: files with the hashes of their contents, commits and
 * branches that exist, and what is checked out. Symbols are left to the code index. Names in a text that are none of these are dropped.
 */
export async function anchorToTree(
  { readFile, history }: TreeAnchorDeps,
  tree: string,
  { given, ...text }: AnchoredText & { readonly given?: readonly string[] | undefined },
): Promise<string[]> {
  const candidates = given ? given.map(readAnchor) : recogniseAnchors(text);
  const ids = candidates.filter(({ kind }) => kind === "commit").map(({ value }) => value);
  const commits = new Map(ids.length > 0 ? (await history.commits(tree, ids)).map((commit, index) => [ids[index], commit] as const) : []);
  const found = candidates.flatMap((candidate) => resolve(candidate) ?? (candidate.optional ? [] : [candidate]));
  const head = readHead(tree);
  const own: AnchorCandidate[] = head ? [{ kind: "head", value: head.commit, branch: head.branch }] : [];
  return [...own, ...found.filter(({ kind }) => kind !== "head" || !head)].slice(0, LIMITS.anchors).map(formatAnchor);

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
