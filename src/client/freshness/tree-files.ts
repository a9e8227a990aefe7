import { createHash } from "node:crypto";
import { lstatSync } from "node:fs";
import { isAbsolute, join, relative, sep } from "node:path";
import { readRegularFile } from "../../files/regular-file.ts";
import { LIMITS } from "../../model/limits.ts";

/** A file of the working tree. */
export interface TreeFile {
  readonly hash: string;
  readonly lines: () => readonly string[];
}

/** Reads files of a working tree. `missing`: there is no such file. `unreadable`: a folder, a link, too large, or not permitted. */
export type ReadTreeFile = (tree: string, path: string) => TreeFile | "missing" | "unreadable";

/** Files whose hashes are kept: the files of a few answers. */
const CACHED_FILES = 2_000;
/** Milliseconds within which a file may change without changing its times. */
const CLOCK_MS = 2_000;

/** Returns a reader that keeps the hash of a file for as long as its size and times do not change. */
export function treeFiles(): ReadTreeFile {
  const known = new Map<string, { readonly stat: string; readonly readAt: number; readonly hash: string }>();
  return (tree, path) => {
    const absolute = pathIn(tree, path);
    if (absolute === undefined) return "unreadable";
    try {
      const { size, mtimeMs, ctimeMs, mode, ino } = lstatSync(absolute);
      if ((mode & 0o170000) !== 0o100000 || size > LIMITS.codeFileBytes) return "unreadable";
      const stat = `${size} ${mtimeMs} ${ctimeMs} ${ino}`;
      const before = known.get(absolute);
      const lines = () => readText(absolute);
      if (before?.stat === stat && before.readAt - Math.max(mtimeMs, ctimeMs) > CLOCK_MS) return { hash: before.hash, lines };
      const readAt = Date.now();
      const hash = createHash("sha256").update(readRegularFile(absolute, LIMITS.codeFileBytes)).digest("hex");
      known.delete(absolute);
      known.set(absolute, { stat, readAt, hash });
      if (known.size > CACHED_FILES) known.delete(known.keys().next().value!);
      return { hash, lines };
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      return code === "ENOENT" || code === "ENOTDIR" ? "missing" : "unreadable";
    }
  };
}

function readText(path: string): readonly string[] {
  try {
    return readRegularFile(path, LIMITS.codeFileBytes).toString("utf8").split("\n");
  } catch {
    return [];
  }
}

/** Returns the absolute path of a file in the tree, or `undefined` for one outside of it. */
function pathIn(tree: string, path: string): string | undefined {
  if (path === "" || path.includes("\0")) return undefined;
  const absolute = join(tree, path);
  return absolute.startsWith(tree.endsWith(sep) ? tree : tree + sep) ? absolute : undefined;
}

/** Returns a path that a text names as the index stores it: relative to the tree, with slashes. */
export function treePath(tree: string, path: string): string {
  const own = isAbsolute(path) && path.startsWith(tree + sep) ? relative(tree, path) : path;
  return own.split(sep).join("/").replace(/^\.\//, "");
}
