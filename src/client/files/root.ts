import { realpath, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { resolve, sep } from "node:path";
import { identifyProject } from "../../files/git-repository.ts";
import { CairnError } from "../../model/errors.ts";
import type { Job } from "../jobs/job.ts";

/**
 * Returns the root of the tree that a job may walk. Other users may have written the job's file, so its path must be the root of a project:
 * neither a folder inside a project nor a symbolic link to one.
 */
export async function resolveJobRoot({ projectPath, anywhere }: Pick<Job, "projectPath" | "anywhere">): Promise<string> {
  const root = await resolveRoot(projectPath, { anywhere });
  if (root !== projectPath || identifyProject(root).tree !== root)
    throw new CairnError("invalid_input", `The job names ${projectPath}, which is not the root of a project. Start the index again.`);
  return root;
}

/** Returns the real path of a tree that may be walked. Rejects a home directory, and folders that contain one, unless `anywhere` is true. */
export async function resolveRoot(root: string, { anywhere = false }: { readonly anywhere?: boolean } = {}): Promise<string> {
  const path = await realpath(resolve(root)).catch((cause: NodeJS.ErrnoException) => {
    throw new CairnError("not_found", `There is no folder ${root}. Give the path of an existing folder.`, { cause });
  });
  if (!(await stat(path)).isDirectory()) throw new CairnError("invalid_input", `${root} is not a folder. Give the path of a folder.`);
  const home = await realpath(homedir()).catch(() => homedir());
  if (!anywhere && (path === home || home.startsWith(path.endsWith(sep) ? path : path + sep) || path === resolve("/")))
    throw new CairnError("invalid_input", `${path} holds a whole home directory. Give a project in it, or set anywhere (--anywhere).`);
  return path;
}
