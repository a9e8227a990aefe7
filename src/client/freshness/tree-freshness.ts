import type { AnchoredText } from "../../freshness/recognise.ts";
import type { Anchored, Freshness } from "../../model/anchor.ts";
import { anchorToTree } from "./anchor-to-tree.ts";
import { checkTree } from "./check-tree.ts";
import { gitHistory } from "./git-history.ts";
import { treeFiles } from "./tree-files.ts";

/** Anchors records to working trees and compares them. */
export interface TreeFreshness {
  anchor(tree: string, text: AnchoredText & { readonly given?: readonly string[] | undefined }): Promise<string[]>;
  check(tree: string, records: readonly Pick<Anchored, "anchors" | "freshness">[]): Promise<Freshness[]>;
}

/** The caches of this process: hashes of files, and answers of git by commit. */
const deps = { readFile: treeFiles(), history: gitHistory() };

/** Returns the functions with a time limit for the marks of one answer, in milliseconds. */
export function openTreeFreshness(limitMs: number): TreeFreshness {
  return {
    anchor: (tree, text) => anchorToTree(deps, tree, text),
    check: (tree, records) => checkTree({ ...deps, limitMs }, tree, records),
  };
}
