import { existsSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { CairnError } from "../model/errors.ts";

/** The project that is meant: the folder that was named, else the enclosing git repository, else the current folder. */
export function findProject(named: string | undefined, cwd: string): string {
  if (named === undefined) return gitRoot(cwd) ?? cwd;
  const path = resolve(cwd, named);
  if (!isFolder(path))
    throw new CairnError(
      "invalid_input",
      `--project: there is no folder ${JSON.stringify(path.slice(0, 300))}. Give the path of an existing one.`,
    );
  return path;
}

/** A path with a NUL character or too long a name makes the look-up itself fail; to the person it is just as little a folder. */
export function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

/** The nearest folder upwards with a `.git` in it; a worktree has a file of that name. */
function gitRoot(folder: string): string | undefined {
  for (let at = folder; ; at = dirname(at)) {
    if (existsSync(join(at, ".git"))) return at;
    if (dirname(at) === at) return undefined;
  }
}
