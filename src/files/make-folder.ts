import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Creates a folder and its missing parents, for the current user only. Node's own recursive mkdir never returns where an existing parent
 * answers ENOENT, as /proc does.
 */
export function makeFolder(path: string): void {
  const missing: string[] = [];
  for (let folder = path; !existsSync(folder) && folder !== dirname(folder); folder = dirname(folder)) missing.unshift(folder);
  for (const folder of missing)
    try {
      mkdirSync(folder, { mode: 0o700 });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error; // another process may create it too
    }
}
