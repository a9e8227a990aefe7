import { execFileSync } from "node:child_process";

/** A record that quotes code at one commit: a whole file, or the definition of a symbol in it. */
export interface Quote {
  readonly path: string;
  readonly symbol?: string | undefined;
  /** The text of the definition. */
  readonly text?: string | undefined;
}

export type Verdict = "fresh" | "changed" | "gone" | "renamed";

/** Files that are worth quoting. */
const SOURCE = /\.(?:go|ts|tsx|js|mjs|py|rs|java|rb|md)$/;
/** Functions whose end is a line of its own, so that their text needs no parser. */
const FUNCTION = /^(?:export )?(?:async )?func(?:tion)? (?:\([^)\n]*\) )?([A-Za-z_]\w*)\(/;

export function runGit(repository: string, ...args: readonly string[]): string {
  return execFileSync("git", args, { cwd: repository, encoding: "utf8", maxBuffer: 512 * 1024 * 1024 });
}

/** Returns the source files of a commit with their contents. */
export function readFiles(repository: string, commit: string, limit: number): Map<string, string> {
  const paths = runGit(repository, "ls-tree", "-r", "-z", "--name-only", commit).split("\0");
  const chosen = paths.filter((path) => SOURCE.test(path)).slice(0, limit);
  return new Map(chosen.map((path) => [path, runGit(repository, "show", `${commit}:${path}`)]));
}

/** Returns the functions of a file whose names occur once in it as definitions. */
export function functionsOf(content: string): { readonly symbol: string; readonly text: string }[] {
  const lines = content.split("\n");
  const found = lines.flatMap((line, start) => {
    const symbol = FUNCTION.exec(line)?.[1];
    const length = symbol === undefined ? -1 : lines.slice(start).indexOf("}");
    return symbol === undefined || length < 1 ? [] : [{ symbol, text: lines.slice(start, start + length + 1).join("\n") }];
  });
  return found.filter(({ symbol }) => found.filter((other) => other.symbol === symbol).length === 1);
}

/** Returns what became of quotes between two commits: files as `git diff -M` says, symbols by comparing their texts. */
export function oracle(repository: string, from: string, to: string): (quote: Quote) => Verdict {
  const fields = runGit(repository, "diff", "-M", "--name-status", "-z", from, to).split("\0");
  const files = new Map<string, { readonly verdict: Verdict; readonly path: string }>();
  for (let at = 0; at + 1 < fields.length; ) {
    const status = fields[at]![0];
    const path = fields[at + 1]!;
    if (status === "R") files.set(path, { verdict: "renamed", path: fields[at + 2]! });
    else if (status === "D") files.set(path, { verdict: "gone", path });
    else if (status === "M" || status === "T") files.set(path, { verdict: "changed", path });
    at += status === "R" || status === "C" ? 3 : 2;
  }
  return ({ path, symbol, text }) => {
    const file = files.get(path) ?? { verdict: "fresh", path };
    if (symbol === undefined || file.verdict === "gone" || file.verdict === "fresh") return file.verdict;
    const now = `\n${runGit(repository, "show", `${to}:${file.path}`)}\n`;
    if (now.includes(`\n${text}\n`)) return file.verdict === "renamed" ? "renamed" : "fresh";
    return new RegExp(`(?<![\\w$])${symbol}(?![\\w$])`).test(now) ? "changed" : "gone";
  };
}
