import { z } from "zod";
import { LIMITS } from "../model/limits.ts";
import { operation } from "../operation.ts";
import { CheckpointOutput, Context, Id, ProjectPath, Tags, text } from "./schemas.ts";

const READ = { readOnly: true, destructive: false, idempotent: true };

export const checkpointSave = operation({
  name: "checkpoint_save",
  summary: "Save where you are, so that a later session can pick it up.",
  input: z.strictObject({
    project_path: ProjectPath,
    summary: text(LIMITS.summaryChars, 1).describe("One line: what was done and what comes next."),
    description: text(LIMITS.descriptionChars).optional().describe("Details a later session needs."),
    context: Context.optional().describe("Facts as key/value pairs, such as branch or failing test."),
    tags: Tags.optional(),
  }),
  output: CheckpointOutput,
  access: "write",
  annotations: { readOnly: false, destructive: false, idempotent: false },
  limits: { timeoutMs: LIMITS.saveTimeoutMs },
  toolset: "core",
  cli: {
    positional: ["summary"],
    examples: [
      'cairn checkpoint save "Parser done, lexer next" --tags parser --tags wip',
      'cairn checkpoint save "Red tests" --context branch=main',
    ],
  },
  render: (saved) => `Saved checkpoint ${saved.id} (${saved.token_count} tokens): ${saved.summary}`,
  run: (cairn, input) => cairn.checkpoints.save(input),
});

export const checkpointGet = operation({
  name: "checkpoint_get",
  summary: "Read one checkpoint in full.",
  input: z.strictObject({ project_path: ProjectPath, id: Id }),
  output: CheckpointOutput,
  access: "read",
  annotations: READ,
  limits: { timeoutMs: LIMITS.listTimeoutMs },
  toolset: "core",
  cli: {
    positional: ["id"],
    examples: ["cairn checkpoint get 6c1f0a9e-7a3e-4b0a-9b5e-0d5a4e1f2b3c"],
    view: { record: ["summary", "description", "context", "tags", "id", "created_at", "updated_at", "token_count"] },
  },
  render: (checkpoint) =>
    [
      checkpoint.summary,
      `${checkpoint.id}, ${checkpoint.created_at}${checkpoint.tags.length ? `, tags: ${checkpoint.tags.join(", ")}` : ""}`,
      checkpoint.description,
      ...Object.entries(checkpoint.context).map(([key, value]) => `${key}: ${value}`),
    ]
      .filter(Boolean)
      .join("\n"),
  run: (cairn, input) => cairn.checkpoints.get(input),
});

export const checkpointList = operation({
  name: "checkpoint_list",
  summary: "List this project's checkpoints, newest first.",
  input: z.strictObject({
    project_path: ProjectPath,
    limit: z.int().min(1).max(LIMITS.listMax).default(LIMITS.listDefault),
    offset: z.int().min(0).max(LIMITS.offsetMax).default(0),
    cursor: text(LIMITS.cursorChars, 1).optional().describe("next_cursor of the page before."),
    sort_by: z.enum(["created_at", "updated_at"]).default("created_at"),
  }),
  output: z.object({ checkpoints: z.array(CheckpointOutput), total: z.int(), next_cursor: z.string().optional() }),
  access: "read",
  annotations: READ,
  limits: { timeoutMs: LIMITS.listTimeoutMs },
  toolset: "core",
  cli: {
    examples: ["cairn checkpoint list", "cairn checkpoint list --limit 50 --sort-by updated_at --json"],
    view: { table: "checkpoints", columns: ["id", "created_at", "summary", "tags"] },
  },
  render: ({ checkpoints, total, next_cursor }) =>
    [
      `${checkpoints.length} of ${total} checkpoints`,
      ...checkpoints.map((checkpoint) => `${checkpoint.id}  ${checkpoint.created_at}  ${checkpoint.summary}`),
      next_cursor ? `More: call again with cursor ${next_cursor}` : "",
    ]
      .filter(Boolean)
      .join("\n"),
  run: (cairn, input) => cairn.checkpoints.list(input),
});

export const checkpointDelete = operation({
  name: "checkpoint_delete",
  summary: "Delete one checkpoint for good.",
  input: z.strictObject({ project_path: ProjectPath, id: Id }),
  output: z.object({ deleted: z.boolean() }),
  access: "write",
  annotations: { readOnly: false, destructive: true, idempotent: true },
  limits: { timeoutMs: LIMITS.listTimeoutMs },
  toolset: "core",
  cli: { positional: ["id"], examples: ["cairn checkpoint delete 6c1f0a9e-7a3e-4b0a-9b5e-0d5a4e1f2b3c"] },
  render: ({ deleted }) => (deleted ? "Deleted." : "There was no such checkpoint."),
  run: (cairn, input) => cairn.checkpoints.delete(input),
});

export const checkpointOperations = [checkpointSave, checkpointGet, checkpointList, checkpointDelete];
