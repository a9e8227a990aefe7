import { z } from "zod";
import { LIMITS } from "../model/limits.ts";
import { operation } from "../operations/operation.ts";
import { ProjectId, text } from "../operations/schemas.ts";

export const projectDelete = operation({
  name: "project_delete",
  summary: "Erase all checkpoints, knowledge and code of a project. This cannot be undone.",
  description:
    "Also erases deleted records. Backups and shared knowledge stay. Without confirm it only reports what would be erased, as an error.",
  input: z.strictObject({
    project_path: ProjectId,
    confirm: text(LIMITS.projectPathChars, 1).optional().describe("The path of the project again, to confirm."),
  }),
  output: z.object({ project_path: z.string(), checkpoints: z.int(), knowledge: z.int(), bytes: z.int().optional() }),
  access: "admin",
  annotations: { destructive: true, idempotent: false },
  limits: { timeoutMs: LIMITS.databaseTimeoutMs },
  toolset: "admin",
  cli: {
    storedProject: true,
    examples: ["cairn project delete --project /home/me/old-app --confirm /home/me/old-app"],
    cancelled: "The project is either erased or unchanged.",
  },
  render: ({ project_path, checkpoints, knowledge }) =>
    `Erased ${project_path}: ${checkpoints} checkpoints and ${knowledge} knowledge records. Backups stay until they expire.`,
  run: (cairn, input) => cairn.databases.delete(input),
});
