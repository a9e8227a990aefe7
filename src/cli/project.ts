import { resolve } from "node:path";
import { identifyProject, type ProjectIdentity } from "../files/git-repository.ts";
import { isFolder } from "../files/is-folder.ts";
import { shortPath } from "../files/regular-file.ts";
import { CairnError } from "../model/errors.ts";

/** Returns the project of the folder that --project names, or of the current folder. With `stored`, a project without a folder as well. */
export function findProject(folder: string | undefined, cwd: string, { stored = false } = {}): ProjectIdentity {
  const path = resolve(cwd, folder ?? ".");
  if (stored && folder !== undefined && !isFolder(path)) return { repository: folder, tree: folder };
  if (!isFolder(path))
    throw new CairnError("invalid_input", `--project: there is no folder ${shortPath(path)}. Give the path of an existing one.`);
  return identifyProject(path);
}
