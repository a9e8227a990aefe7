import type { DatabaseReport, QuarantineReport } from "../model/database-report.ts";
import { CairnError } from "../model/errors.ts";
import type { Storage } from "../ports/storage.ts";

/** What to do when a project's database may be damaged. Nothing is ever reset or deleted. */
export interface Databases {
  /** Reads the whole database and says what is wrong with it. */
  check(input: { readonly projectPath: string }): Promise<DatabaseReport>;
  /** Sets a damaged database aside, so that a backup can be restored or a new one started. A sound one only if told so. */
  quarantine(input: { readonly projectPath: string; readonly evenIfSound?: boolean | undefined }): Promise<QuarantineReport>;
}

export function databases({ storage }: { readonly storage: Storage }): Databases {
  return {
    check: ({ projectPath }) => storage.checkProject(projectPath),

    async quarantine({ projectPath, evenIfSound = false }) {
      const { state, location, problems } = await storage.checkProject(projectPath);
      if (state === "sound" && !evenIfSound)
        throw new CairnError("conflict", `${location} is sound, so it stays. To set it aside all the same, say so with even_if_sound.`);
      return storage.quarantine(projectPath, problems);
    },
  };
}
