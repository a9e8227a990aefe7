import { z } from "zod";
import { LIMITS } from "../model/limits.ts";
import { operation } from "../operations/operation.ts";
import { Id, ProjectPath } from "../operations/schemas.ts";
import { SavedOutput, toSavedOutput } from "./operations.ts";

export const checkpointRestore = operation({
  name: "checkpoint_restore",
  summary: "Restore a deleted checkpoint.",
  input: z.strictObject({ project_path: ProjectPath, id: Id }),
  output: SavedOutput,
  access: "write",
  toolset: "admin",
  cli: { positional: ["id"], examples: ["cairn checkpoint restore 6c1f0a9e"] },
  render: ({ id, summary }) => `Restored checkpoint ${id}: ${summary}`,
  run: async (cairn, input, { signal }) => toSavedOutput(await cairn.checkpoints.restore(input, { signal })),
});

export const checkpointPurge = operation({
  name: "checkpoint_purge",
  summary: "Erase a checkpoint at once, deleted or not. It cannot be restored.",
  input: z.strictObject({ project_path: ProjectPath, id: Id }),
  output: z.object({ purged: z.boolean() }),
  access: "write",
  annotations: { destructive: true, idempotent: false },
  limits: { timeoutMs: LIMITS.listTimeoutMs },
  toolset: "admin",
  cli: { positional: ["id"], examples: ["cairn checkpoint purge 6c1f0a9e"] },
  render: () => "Erased.",
  run: (cairn, input) => cairn.checkpoints.purge(input),
});
