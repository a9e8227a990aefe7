import { z } from "zod";
import { LIMITS } from "../model/limits.ts";
import { assertMayTouch } from "../model/record-scope.ts";
import { operation } from "../operations/operation.ts";
import { Id } from "../operations/schemas.ts";
import { PlaceFields } from "../operations/write-schemas.ts";
import { SavedOutput, toSavedOutput } from "./operations.ts";

export const knowledgeRestore = operation({
  name: "knowledge_restore",
  summary: "Restore a deleted knowledge record with its counts.",
  input: z.strictObject({ ...PlaceFields, id: Id }),
  output: SavedOutput,
  access: "write",
  toolset: "knowledge",
  cli: { positional: ["id"], examples: ["cairn knowledge restore tmpl_109 --scope shared"] },
  render: ({ id, question }) => `Restored ${id}: ${question}`,
  async run(cairn, input, context) {
    assertMayTouch(input, context.mayTouch);
    return toSavedOutput(await cairn.knowledge.restore(input, context));
  },
});

export const knowledgePurge = operation({
  name: "knowledge_purge",
  summary: "Erase a knowledge record at once, deleted or not. It cannot be restored.",
  input: z.strictObject({ ...PlaceFields, id: Id }),
  output: z.object({ purged: z.boolean() }),
  access: "write",
  annotations: { destructive: true, idempotent: false },
  limits: { timeoutMs: LIMITS.listTimeoutMs },
  toolset: "knowledge",
  cli: { positional: ["id"], examples: ["cairn knowledge purge tmpl_109 --scope shared"] },
  render: () => "Erased.",
  async run(cairn, input, context) {
    assertMayTouch(input, context.mayTouch);
    return cairn.knowledge.purge(input);
  },
});

export const knowledgeDeletionOperations = [knowledgeRestore, knowledgePurge];
