import { z } from "zod";
import { SHARED_PROJECT_ID } from "../model/ids.ts";
import { LIMITS } from "../model/limits.ts";
import { ProjectPath, text } from "../text/schemas.ts";

/** What the operations on code have in common on the wire. */

/** Programs that send content may know their project by a name; the local side uses the absolute path. */
export const CodeProject = z
  .union([
    ProjectPath,
    text(LIMITS.labelChars, 1).regex(/^[A-Za-z0-9][\w.-]*$/, "must be an absolute path, or a name of letters, digits, dots, - and _"),
  ])
  .refine((id) => id !== SHARED_PROJECT_ID, '"shared" is no project; it holds knowledge only')
  .describe("The project: its absolute path, or a name.");

export const READ = { readOnly: true, destructive: false, idempotent: true };

/** Relative to the project, with `/`. What it may hold is checked where it is used. */
export const FilePath = text(LIMITS.projectPathChars, 1);

export const JobOutput = z.object({
  job_id: z.string(),
  project_id: z.string(),
  kind: z.enum(["files", "manifest"]),
  status: z.enum(["pending", "running", "completed", "partial", "failed", "cancelled"]),
  accepted_at: z.iso.datetime(),
  started_at: z.iso.datetime().optional(),
  finished_at: z.iso.datetime().optional(),
  reason: z.string().optional().describe("Why it failed."),
  result: z
    .object({
      files: z.array(
        z.object({
          path: z.string(),
          status: z.enum(["indexed", "unchanged", "moved", "partial", "failed"]),
          chunks: z.int().optional(),
          reason: z.string().optional(),
          redacted: z.array(z.object({ kind: z.string(), count: z.int() })).optional(),
        }),
      ),
      embedded_texts: z.int(),
      not_embedded: z.string().optional().describe("Why some of it is found by words only, for now."),
      removed: z.int(),
      removed_paths: z.array(z.string()).describe("The first of them."),
      moved: z.int(),
    })
    .optional(),
});
