import { z } from "zod";
import { LIMITS } from "../model/limits.ts";
import { ProjectPath, text } from "./schemas.ts";

export const IdempotencyKey = text(LIMITS.idempotencyKeyChars, 1)
  .optional()
  .describe("Identifies the call: repeated with the same key within 24 hours, it has no further effect.");

/** The age of a retention rule. The service reads it, because a duration depends on the clock. */
export const OlderThan = text(40, 1);
export const OLDER_THAN_FORMS = "30d, 12h, 4w, or a time such as 2026-01-31T00:00:00Z.";

/** The answer to a deletion. */
export const Deletion = z.object({
  id: z.string(),
  deleted: z.boolean(),
  deleted_at: z.iso.datetime(),
  restorable_until: z.iso.datetime().describe("The end of its retention."),
});

/** The fields of a record scope: a project, or shared. */
export const PlaceFields = {
  project_path: ProjectPath.optional(),
  scope: z.enum(["project", "shared"]).optional().describe("shared: for all projects."),
};
