import { isAbsolute, normalize } from "node:path";
import { identifyProject } from "../../files/git-repository.ts";
import { isFolder } from "../../files/is-folder.ts";
import { LIMITS } from "../../model/limits.ts";
import { unstorable } from "../../text/untrusted.ts";

/**
 * Returns a function that finds the project of a folder: its repository, or the folder as it was recorded if it exists no more. Returns
 * `undefined` for a text that is no absolute path. Each folder is looked up once.
 */
export function projectFinder(home: string): (folder: string) => string | undefined {
  const known = new Map<string, string | undefined>();
  return (folder) => {
    if (!known.has(folder)) known.set(folder, findProject(folder, home));
    return known.get(folder);
  };
}

function findProject(folder: string, home: string): string | undefined {
  if (!isAbsolute(folder) || folder.length > LIMITS.projectPathChars || unstorable(folder)) return undefined;
  const clean = normalize(folder).replace(/(?<=.)[\\/]$/, "");
  try {
    return isFolder(clean) ? identifyProject(clean, home).repository : clean;
  } catch {
    return clean; // no permission
  }
}
