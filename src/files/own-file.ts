import type { Stats } from "node:fs";
import { CairnError } from "../model/errors.ts";
import { readRegularFile, shortPath } from "./regular-file.ts";

/** Reads a file that only this user or root can have written. A file that others can write is rejected. */
export function readOwnFile(path: string, limitBytes: number): Buffer {
  return readRegularFile(path, limitBytes, (stats) => {
    const problem = writableByOthers(stats);
    if (problem !== undefined)
      throw new CairnError("forbidden", `${shortPath(path)} ${problem}, so it is not used. Check its content, then run chmod 600 on it.`);
  });
}

/** Returns why other users can change a file or folder, as a predicate of its name; `undefined` if they cannot. */
export function writableByOthers({ mode, uid }: Pick<Stats, "mode" | "uid">): string | undefined {
  const self = process.getuid?.();
  if (self === undefined) return undefined; // Windows has no such modes
  if (uid !== self && uid !== 0) return `belongs to another user (uid ${uid})`;
  if (mode & 0o002) return "can be written by every user of this machine";
  return mode & 0o020 ? "can be written by its group" : undefined;
}
