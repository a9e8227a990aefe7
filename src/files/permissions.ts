import { type Dirent, readdirSync, type Stats, statSync } from "node:fs";
import { basename, join } from "node:path";
import type { ExposedPath } from "../model/doctor.ts";
import { writableByOthers } from "./own-file.ts";

/** Files that hold keys, passwords, or the user's decisions. */
const SECRET = /^(keys\.json|config\.json|trusted\.json|.*token.*|.*\.db\.migration)$/;

/** Finds paths in Cairn's folders that others than their owner can write, or that hold secrets and that others can read. */
export function exposedPaths(folders: readonly string[]): ExposedPath[] {
  const paths = new Set(folders.flatMap((folder) => [folder, ...pathsIn(folder).flatMap((path) => [path, ...pathsIn(path)])]));
  return [...paths].flatMap((path) => exposureOf(path) ?? []);
}

/** What is in a folder; nothing for a file, and for a folder that is missing or cannot be read. */
function pathsIn(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter(isPlain)
      .map(({ name }) => join(folder, name));
  } catch {
    return [];
  }
}

const isPlain = (entry: Dirent) => entry.isFile() || entry.isDirectory();

/** What is wrong with the permissions of one path; `undefined` if nothing is, or if it is missing. */
export function exposureOf(path: string): ExposedPath | undefined {
  const stats = process.getuid === undefined ? undefined : statsOf(path); // Windows has access lists instead of modes
  if (!stats) return undefined;
  const problem = writableByOthers(stats);
  if (problem !== undefined) return { path, problem, chmod: stats.mode & 0o022 ? "go-w" : undefined };
  if (stats.isFile() && stats.mode & 0o044 && SECRET.test(basename(path)))
    return { path, problem: "holds secrets and can be read by other users", chmod: "600" };
  return undefined;
}

function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
