import type { DatabaseReport, QuarantineReport } from "../model/database-report.ts";
import { CairnError } from "../model/errors.ts";
import { type DeletedProject, type DeleteProject, type DeleteProjectDeps, deleteProject } from "./delete-project.ts";

/** Checks, quarantines and deletes the databases of projects. */
export interface Databases {
  /** Reads the whole database and returns its problems. */
  check(input: { readonly projectPath: string }): Promise<DatabaseReport>;
  /** Moves a damaged database to quarantine, so that a backup can be restored or a new one created. An intact one needs `evenIfSound`. */
  quarantine(input: { readonly projectPath: string; readonly evenIfSound?: boolean | undefined }): Promise<QuarantineReport>;
  /** Erases the database of a project. `confirm` must repeat its path. Raises `not_found` if nothing is stored for it. */
  delete(input: DeleteProject): Promise<DeletedProject>;
}

export function databases({ storage, queue }: DeleteProjectDeps): Databases {
  return {
    delete: (input) => deleteProject({ storage, queue }, input),

    check: ({ projectPath }) => storage.checkProject(projectPath),

    async quarantine({ projectPath, evenIfSound = false }) {
      const { state, location, problems } = await storage.checkProject(projectPath);
      if (state === "sound" && !evenIfSound)
        throw new CairnError("conflict", `${location} is not damaged. Nothing was changed. Quarantine it anyway with even_if_sound.`);
      return storage.quarantine(projectPath, problems);
    },
  };
}
