import { z } from "zod";
import type { DatabaseSelection } from "../model/backup.ts";
import { CairnError } from "../model/errors.ts";
import { SHARED_PROJECT_ID } from "../model/ids.ts";
import { LIMITS } from "../model/limits.ts";
import { assertMayTouch, resolveDatabase } from "../model/record-scope.ts";
import { ProjectId, text } from "./schemas.ts";
import { PlaceFields } from "./write-schemas.ts";

/** Selects databases: the project's by default. */
export const SelectionFields = {
  ...PlaceFields,
  project_path: ProjectId.optional(),
  runs: z.boolean().default(false).describe("The database of runs."),
  system: text(LIMITS.idChars, 1).optional().describe("The database of this system."),
  all: z.boolean().default(false).describe("All databases."),
};

interface Selection {
  readonly projectPath?: string | undefined;
  readonly scope?: "project" | "shared" | undefined;
  readonly runs: boolean;
  readonly system?: string | undefined;
  readonly all: boolean;
}

/** What the caller may touch. */
interface Rights {
  readonly mayTouch: (projectId: string) => boolean;
  readonly allProjects: boolean;
}

/** Returns the selected databases: the project's when nothing else is named. */
export function selectionOf({ projectPath, scope, runs, system, all }: Selection, rights: Rights): DatabaseSelection {
  const named = [scope === "shared", runs, system !== undefined, all].filter(Boolean).length;
  if (named > 1) throw new CairnError("invalid_input", "Select one of: a project, scope shared, runs, a system, or all.");
  if (runs || system !== undefined || all) assertAllProjects(rights);
  if (all) return "all";
  if (runs) return { kind: "runs", id: "runs" };
  if (system !== undefined) return { kind: "system", id: system };
  assertMayTouch({ projectPath, scope }, rights.mayTouch);
  const id = resolveDatabase({ projectPath, scope });
  return { kind: id === SHARED_PROJECT_ID ? "shared" : "project", id };
}

/** Raises `forbidden` unless the caller may access every project. */
export function assertAllProjects({ allProjects }: Pick<Rights, "allProjects">): void {
  if (!allProjects) throw new CairnError("forbidden", "This affects every project, so it needs an admin key for all projects.");
}
