import { execFileSync } from "node:child_process";

/** A commit of the checkout: its subject without the area, and the paths that it changed. */
export interface Commit {
  readonly hash: string;
  readonly subject: string;
  readonly body: string;
  readonly changed: readonly string[];
}

/** Returns the commits, oldest first; none without git. */
export function readCommits(root: string): Commit[] {
  try {
    const log = execFileSync("git", ["-C", root, "log", "--reverse", "--name-only", "--format=%x02%H%x01%s%x01%b%x01"], {
      ...{ encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "ignore"] },
    } as const);
    return log
      .split("\x02")
      .slice(1)
      .map((entry) => {
        const [hash = "", subject = "", body = "", names = ""] = entry.split("\x01");
        return { hash, subject: subject.replace(/^[^:]*: /, ""), body: body.trim(), changed: names.trim().split("\n") };
      });
  } catch {
    return [];
  }
}
