import { join } from "node:path";
import type { Anchored, Freshness } from "../../model/anchor.ts";
import { anchorToTree, type ResolveInIndex, type UnanchoredRecord } from "./anchor-to-tree.ts";
import { checkTree } from "./check-tree.ts";
import { gitFacts } from "./git-facts.ts";
import { type GitHistory, gitHistory } from "./git-history.ts";
import { treeFiles } from "./tree-files.ts";

/** Anchors records to working trees and compares them. */
export interface TreeFreshness {
  anchor(tree: string, records: readonly UnanchoredRecord[], resolveInIndex: ResolveInIndex): Promise<string[][]>;
  check(tree: string, records: readonly Pick<Anchored, "anchors" | "freshness">[]): Promise<Freshness[]>;
}

export interface TreeFreshnessOptions {
  /** Milliseconds that the marks of one answer may take. */
  readonly limitMs: number;
  /** The data folder, in which answers of git are kept for later processes. Without it they are kept in memory. */
  readonly dataDir?: string | undefined;
}

/** The caches of this process: hashes of files, and answers of git by data folder. */
const readFile = treeFiles();
const histories = new Map<string | undefined, GitHistory>();

export function openTreeFreshness({ limitMs, dataDir }: TreeFreshnessOptions): TreeFreshness {
  const history = histories.get(dataDir) ?? gitHistory(gitFacts(dataDir === undefined ? undefined : join(dataDir, "git")));
  histories.set(dataDir, history);
  return {
    anchor: (tree, records, resolveInIndex) => anchorToTree({ readFile, history, resolveInIndex }, tree, records),
    check: (tree, records) => checkTree({ readFile, history, limitMs }, tree, records),
  };
}
