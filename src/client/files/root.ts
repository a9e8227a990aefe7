import { realpath, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { resolve, sep } from "node:path";
import { identifyProject } from "../../files/git-repository.ts";
import { CairnError } from "../../model/errors.ts";
import type { Job } from "../jobs/job.ts";

/**
 * The root of the tree that a job may walk. A job is read from a file that others may have written, so the path in it must itself be the
 * root of a project: neither a folder inside one nor a link to one.
 */
export async function resolveJobRoot({ project_id: projectId, anywhere }: Pick<Job, "project_id" | "anywhere">): Promise<string> {
  const root = await resolveRoot(projectId, { anywhere });
  if (root !== projectId || identifyProject(root).tree !== root)
    throw new CairnError("invalid_input", `The job names ${projectId}, which is not the root of a project. Start the index again.`);
  return root;
}

/** The real path of a tree that may be walked. A home directory, or anything around it, is refused unless `anywhere` says it is meant. */
export async function resolveRoot(root: string, { anywhere = false }: { readonly anywhere?: boolean } = {}): Promise<string> {
  const path = await realpath(resolve(root)).catch((cause: NodeJS.ErrnoException) => {
    throw new CairnError("not_found", `There is no folder ${root}. Name one that exists and can be read.`, { cause });
  });
  if (!(await stat(path)).isDirectory()) throw new CairnError("invalid_input", `${root} is not a folder. Name the folder to walk.`);
  const home = await realpath(homedir()).catch(() => homedir());
  if (!anywhere && (path === home || home.startsWith(path.endsWith(sep) ? path : path + sep) || path === resolve("/")))
    throw new CairnError("invalid_input", `${path} holds a whole home directory. Name a project in it, or say that all of it is meant.`);
  return path;
}
