import { CairnError } from "../model/errors.ts";
import { assertProject } from "../model/ids.ts";
import type { IndexQueue } from "../ports/index-queue.ts";
import type { Storage } from "../ports/storage.ts";

export interface DeleteProject {
  readonly projectPath: string;
  /** Must repeat the project's path: this cannot be undone. */
  readonly confirm?: string | undefined;
}

/** What was erased. */
export interface DeletedProject {
  readonly projectPath: string;
  readonly checkpoints: number;
  readonly knowledge: number;
  /** Bytes on disk, where the storage knows them. */
  readonly bytes?: number | undefined;
}

export interface DeleteProjectDeps {
  readonly storage: Storage;
  readonly queue: Pick<IndexQueue, "depth">;
}

/** Erases all that is stored for a project: checkpoints, knowledge, deleted records and the code index. Backups stay. */
export async function deleteProject(
  { storage, queue }: DeleteProjectDeps,
  { projectPath, confirm }: DeleteProject,
): Promise<DeletedProject> {
  assertProject(projectPath);
  const project = await storage.find(projectPath);
  if (!project)
    throw new CairnError("not_found", `Nothing is stored for the project ${JSON.stringify(projectPath.slice(0, 300))}. See project_list.`);
  const [{ total: checkpoints }, { total: knowledge }, bytes, { pending, running }] = await Promise.all([
    project.checkpoints.list({ limit: 1, offset: 0, sortBy: "created_at" }),
    project.knowledge.list({ limit: 1 }),
    storage.sizeBytes(projectPath),
    queue.depth(projectPath),
  ]);
  if (confirm !== projectPath)
    throw new CairnError(
      "invalid_input",
      `confirm: repeat ${JSON.stringify(projectPath.slice(0, 300))} to erase its checkpoints (${checkpoints}) and knowledge records (${knowledge}). This cannot be undone.`,
      { details: { checkpoints, knowledge } },
    );
  if (pending + running > 0)
    throw new CairnError("conflict", "Index jobs of this project are queued, and would store files again. Cancel them or wait.", {
      retryAfterMs: 1_000,
    });
  await storage.remove(projectPath);
  return { projectPath, checkpoints, knowledge, bytes };
}
