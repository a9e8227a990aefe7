import { statSync } from "node:fs";

/** Returns whether the path names a folder. A path that cannot be looked up, for a NUL character or its length, does not. */
export function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
