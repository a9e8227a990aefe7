import { z } from "zod";
import { LIMITS } from "../model/limits.ts";
import { operation } from "../operation.ts";
import { Context, Id, ProjectPath, Tags, text } from "../text/schemas.ts";
import type { SavedCheckpoint } from "./service.ts";

const CheckpointOutput = z.object({
  id: z.string(),
  project_path: z.string(),
  summary: z.string(),
  description: z.string(),
  context: z.record(z.string(), z.string()),
  tags: z.array(z.string()),
  token_count: z.int(),
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
});

const SavedOutput = CheckpointOutput.extend({
  embedding_pending: z.boolean().optional().describe("true: found by words now, by meaning as soon as its vector is there."),
  redacted: z
    .array(z.object({ kind: z.string(), field: z.string(), count: z.int() }))
    .optional()
    .describe("Secrets that were taken out."),
});

const saved = ({ embedded, ...checkpoint }: SavedCheckpoint) => (embedded ? checkpoint : { ...checkpoint, embeddingPending: true });

const FilterFields = {
  tags: Tags.optional().describe("Only those with all of these tags."),
  tag_match: z.enum(["exact", "substring"]).default("exact"),
  created_from: z.iso.datetime({ offset: true }).optional(),
  created_before: z.iso.datetime({ offset: true }).optional(),
};

const FoundRank = z.object({ rank: z.int(), score: z.number() });

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
  output: SavedOutput,
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
  render: ({ id, token_count, summary, embedding_pending, redacted }) =>
    [
      `Saved checkpoint ${id} (${token_count} tokens): ${summary}`,
      ...(embedding_pending ? ["Its vector is still to come; words find it already."] : []),
      ...redactionNote(redacted),
    ].join("\n"),
  run: async (cairn, input, { signal }) => saved(await cairn.checkpoints.save(input, { signal })),
});

export const checkpointSearch = operation({
  name: "checkpoint_search",
  summary: "Find checkpoints of this project by meaning and by words.",
  input: z.strictObject({
    project_path: ProjectPath,
    query: text(LIMITS.queryChars, 1).describe("What you look for, in your own words."),
    top_k: z.int().min(1).max(LIMITS.listMax).default(5),
    mode: z.enum(["hybrid", "semantic", "keyword"]).default("hybrid"),
    ...FilterFields,
  }),
  output: z.object({
    results: z.array(
      z.object({
        checkpoint: CheckpointOutput,
        score: z.number().describe("Cosine similarity, 0 to 1."),
        distance: z.number(),
        found: z
          .object({ meaning: FoundRank.optional(), words: FoundRank.optional() })
          .describe("Place and score in each ranking that found it."),
      }),
    ),
    degraded: z.array(z.string()).describe("What was missing, if anything."),
    model: z.string().optional(),
  }),
  access: "read",
  annotations: READ,
  limits: { timeoutMs: LIMITS.searchTimeoutMs },
  toolset: "core",
  cli: {
    positional: ["query"],
    examples: ['cairn checkpoint search "where did the login tests break"', 'cairn checkpoint search "retry" --tags http --top-k 3'],
    view: { table: "results", columns: ["score", "checkpoint.id", "checkpoint.created_at", "checkpoint.summary"] },
  },
  render: ({ results, degraded }) =>
    [
      ...(results.length === 0 ? ["No checkpoints found."] : []),
      ...results.map(
        ({ checkpoint, score }) => `${score.toFixed(2)}  ${checkpoint.id}  ${checkpoint.created_at.slice(0, 16)}  ${checkpoint.summary}`,
      ),
      ...degraded.map((part) => `Note: ${part}.`),
    ].join("\n"),
  run: async (cairn, input, { signal }) => {
    const { hits, degraded, model } = await cairn.checkpoints.search(utcRange(input), { signal });
    return {
      results: hits.map(({ record, score, found }) => ({ checkpoint: record, score, distance: 1 - score, found })),
      degraded,
      model,
    };
  },
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
    ...FilterFields,
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
  run: (cairn, input) => cairn.checkpoints.list(utcRange(input)),
});

export const checkpointUpdate = operation({
  name: "checkpoint_update",
  summary: "Change fields of a checkpoint; those not given stay.",
  input: z.strictObject({
    project_path: ProjectPath,
    id: Id,
    summary: text(LIMITS.summaryChars, 1).optional(),
    description: text(LIMITS.descriptionChars).optional(),
    context: Context.optional(),
    tags: Tags.optional(),
  }),
  output: SavedOutput,
  access: "write",
  annotations: { readOnly: false, destructive: false, idempotent: true },
  limits: { timeoutMs: LIMITS.saveTimeoutMs },
  toolset: "none",
  cli: { positional: ["id"], examples: ['cairn checkpoint update 6c1f0a9e-7a3e-4b0a-9b5e-0d5a4e1f2b3c --summary "Lexer done"'] },
  render: ({ id, summary, redacted }) => [`Updated checkpoint ${id}: ${summary}`, ...redactionNote(redacted)].join("\n"),
  run: async (cairn, input, { signal }) => saved(await cairn.checkpoints.update(input, { signal })),
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

export const checkpointOperations = [checkpointSave, checkpointSearch, checkpointList, checkpointGet, checkpointUpdate, checkpointDelete];

function redactionNote(redacted: z.output<typeof SavedOutput>["redacted"] = []): string[] {
  if (redacted.length === 0) return [];
  return [
    `Secrets were taken out before storing: ${redacted.map(({ kind, field, count }) => `${count} × ${kind} in ${field}`).join(", ")}.`,
  ];
}

/** Times are stored and compared in UTC with milliseconds; a caller may give any offset. */
function utcRange<Input extends { createdFrom?: string | undefined; createdBefore?: string | undefined }>(input: Input): Input {
  const utc = (time: string | undefined) => (time === undefined ? undefined : new Date(time).toISOString());
  return { ...input, createdFrom: utc(input.createdFrom), createdBefore: utc(input.createdBefore) };
}
