import { type Dirent, readdirSync, type Stats, statSync } from "node:fs";
import { basename, join } from "node:path";
import type { ExposedPath } from "../model/doctor.ts";
import { writableByOthers } from "./own-file.ts";

/** Files with keys, passwords or trust decisions of the user. */
const SECRET = /^(keys\.json|config\.json|trusted\.json|.*token.*|.*\.db\.migration)$/;

/** Finds paths in Cairn's folders that other users can write, and secrets that other users can read. */
export function exposedPaths(folders: readonly string[]): ExposedPath[] {
  const paths = new Set(folders.flatMap((folder) => [folder, ...pathsIn(folder).flatMap((path) => [path, ...pathsIn(path)])]));
  return [...paths].flatMap((path) => exposureOf(path) ?? []);
}

/** Returns the entries of a folder; none for a file, or for a folder that is missing or unreadable. */
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

/** Returns the problem with the permissions of a path; `undefined` if there is none, or if it is missing. */
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
