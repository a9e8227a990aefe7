import { z } from "zod";
import { AnchorFields } from "../freshness/anchor-fields.ts";
import { CodePath, FreshOnly, freshnessField, freshnessNote } from "../freshness/wire-schemas.ts";
import type { Checkpoint } from "../model/checkpoint.ts";
import { LIMITS } from "../model/limits.ts";
import { once } from "../model/once.ts";
import { operation } from "../operations/operation.ts";
import {
  Context,
  Damaged,
  damagedField,
  damagedNote,
  Id,
  ListDeleted,
  MaxTokens,
  ProjectPath,
  redactionNote,
  Tags,
  text,
} from "../operations/schemas.ts";
import { Explain, MatchField, WeightsField, weightsNote } from "../operations/search-schemas.ts";
import { Deletion, IdempotencyKey } from "../operations/write-schemas.ts";
import { matchNote } from "../recall/fuse.ts";
import type { Hit } from "../recall/record-hits.ts";
import { fitNote } from "../text/fit-records.ts";
import { fitCheckpoints } from "./fit.ts";
import { SearchResult } from "./search-schemas.ts";
import type { SavedCheckpoint } from "./service.ts";
import { CheckpointOutput, FilterFields, TextFilter } from "./wire-schemas.ts";

export const SavedOutput = once(() =>
  CheckpointOutput.extend({
    embedding_pending: z.boolean().optional().describe("true: found by keyword now, semantically once it is embedded."),
    redacted: z
      .array(z.object({ kind: z.string(), field: z.string(), count: z.int() }))
      .optional()
      .describe("Secrets that were removed."),
  }),
);

export const toSavedOutput = ({ embedded, ...checkpoint }: SavedCheckpoint) =>
  embedded ? checkpoint : { ...checkpoint, embeddingPending: true };

export const checkpointSave = operation({
  name: "checkpoint_save",
  summary: "Save your progress so that a later session can resume it.",
  input: () =>
    z.strictObject({
      project_path: ProjectPath,
      summary: text(LIMITS.summaryChars, 1).describe("One line: what is done and what comes next."),
      description: text(LIMITS.descriptionChars).optional().describe("Details that a later session needs."),
      context: Context.optional().describe("Facts as key/value pairs, such as branch or failing test."),
      tags: Tags.optional().describe("Labels."),
      ...AnchorFields,
      idempotency_key: IdempotencyKey,
    }),
  output: SavedOutput,
  access: "write",
  annotations: { idempotent: false },
  toolset: "core",
  cli: {
    positional: ["summary"],
    examples: [
      'cairn checkpoint save "Parser done, lexer next" --tags parser --tags wip',
      'cairn checkpoint save "Red tests" --context branch=main',
    ],
  },
  mcp: { compact: compactSaved, unlisted: ["anchors", "supersedes", "idempotency_key"], alwaysLoad: true },
  render: ({ id, token_count, summary, embedding_pending, redacted }) =>
    [
      `Saved checkpoint ${id} (${token_count} tokens): ${summary}`,
      ...(embedding_pending ? ["Found by keyword until its embedding is ready."] : []),
      ...redactionNote(redacted),
    ].join("\n"),
  run: async (cairn, input, { signal }) => toSavedOutput(await cairn.checkpoints.save(input, { signal })),
});

export const checkpointSearch = operation({
  name: "checkpoint_search",
  summary: "Find checkpoints of this project by semantic and keyword search.",
  input: () =>
    z.strictObject({
      project_path: ProjectPath,
      query: text(LIMITS.queryChars, 1).describe("A question or keywords."),
      top_k: z.int().min(1).max(LIMITS.listMax).default(5),
      mode: z.enum(["hybrid", "semantic", "keyword"]).default("hybrid"),
      ...FilterFields,
      fresh_only: FreshOnly,
      max_tokens: MaxTokens,
      explain: Explain,
      code_path: CodePath,
    }),
  output: () =>
    z.object({
      results: z.array(SearchResult),
      match: MatchField,
      weights: WeightsField,
      degraded: z.array(z.string()).describe("What the search had to do without."),
      damaged: Damaged,
      model: z.string().optional(),
      note: z.string().optional().describe("What was omitted and how to get it."),
    }),
  access: "read",
  limits: { timeoutMs: LIMITS.searchTimeoutMs },
  toolset: "core",
  cli: {
    positional: ["query"],
    examples: ['cairn checkpoint search "where did the login tests break"', 'cairn checkpoint search "retry" --tags http --top-k 3'],
    view: {
      table: "results",
      columns: ["score", "checkpoint.id", "checkpoint.created_at", "checkpoint.freshness", "checkpoint.summary", "found"],
      optional: ["checkpoint.created_at", "score"],
    },
  },
  mcp: { compact: compactResults, rows: "results", unlisted: ["mode", "tag_match", "explain", "fresh_only"], alwaysLoad: true },
  render: ({ results, weights, degraded, damaged, note }) =>
    [
      ...(results.length === 0 ? ["No checkpoints found."] : []),
      ...results.map(({ checkpoint, score }) => `${score.toFixed(2)}  ${rowText(checkpoint)}`),
      ...weightsNote(weights),
      ...degraded.map((part) => `Note: ${part}.`),
      ...damagedNote(damaged),
      ...(note ? [note] : []),
    ].join("\n"),
  run: async (cairn, { maxTokens, explain, ...input }, { signal }) => {
    const { hits, match, weights, degraded, damaged, model } = await cairn.checkpoints.search(input, { signal });
    const { results, note } = fitResults(hits, maxTokens);
    return { results, match, ...matchNote({ match, hits, note }), ...(explain && { weights }), degraded, ...damagedField(damaged), model };
  },
});

export const checkpointGet = operation({
  name: "checkpoint_get",
  summary: "Read one checkpoint in full.",
  input: () => z.strictObject({ project_path: ProjectPath, id: Id, max_tokens: MaxTokens, code_path: CodePath }),
  output: () => CheckpointOutput.extend({ note: z.string().optional() }),
  access: "read",
  toolset: "core",
  cli: {
    positional: ["id"],
    examples: ["cairn checkpoint get 6c1f0a9e", "cairn checkpoint get latest"],
    view: {
      record: [
        "summary",
        "description",
        "context",
        "tags",
        "freshness",
        "superseded_by",
        "anchors",
        "id",
        "created_at",
        "updated_at",
        "token_count",
        "note",
      ],
    },
  },
  mcp: { compact: compactCheckpoint, searchHint: "read a saved checkpoint" },
  render: (checkpoint) =>
    [
      checkpoint.summary,
      `${checkpoint.id}, ${checkpoint.created_at}${checkpoint.tags.length ? `, tags: ${checkpoint.tags.join(", ")}` : ""}`,
      ...freshnessNote(checkpoint),
      checkpoint.description,
      ...Object.entries(checkpoint.context).map(([key, value]) => `${key}: ${value}`),
      checkpoint.note,
    ]
      .filter(Boolean)
      .join("\n"),
  run: async (cairn, { maxTokens, ...input }) => {
    const { records, shortened } = fitCheckpoints([await cairn.checkpoints.get(input)], maxTokens);
    return { ...records[0], ...(shortened > 0 && { note: `Cut to about ${maxTokens} tokens. Use a larger max_tokens for the rest.` }) };
  },
});

export const checkpointList = operation({
  name: "checkpoint_list",
  summary: "List this project's checkpoints, newest first.",
  input: () =>
    z.strictObject({
      project_path: ProjectPath,
      limit: z.int().min(1).max(LIMITS.listMax).default(LIMITS.listDefault),
      offset: z.int().min(0).max(LIMITS.offsetMax).default(0),
      cursor: text(LIMITS.cursorChars, 1).optional().describe("next_cursor of the previous page."),
      sort_by: z.enum(["created_at", "updated_at"]).default("created_at"),
      ...FilterFields,
      text: TextFilter,
      deleted: ListDeleted,
      max_tokens: MaxTokens,
      code_path: CodePath,
    }),
  output: () =>
    z.object({
      checkpoints: z.array(CheckpointOutput),
      damaged: Damaged,
      total: z.int(),
      next_cursor: z.string().optional(),
      note: z.string().optional(),
    }),
  access: "read",
  toolset: "core",
  cli: {
    examples: ["cairn checkpoint list", "cairn checkpoint list --limit 50 --sort-by updated_at --json", "cairn checkpoint list --deleted"],
    view: { table: "checkpoints", columns: ["id", "created_at", "freshness", "summary", "tags"], optional: ["tags", "freshness"] },
  },
  mcp: {
    compact: ({ checkpoints, ...rest }) => ({ checkpoints: checkpoints.map(compactRow), ...rest }),
    rows: "checkpoints",
    unlisted: ["offset", "sort_by", "tag_match", "created_from", "created_before", "context", "text", "deleted"],
    searchHint: "history of saved progress",
  },
  render: ({ checkpoints, damaged, total, next_cursor, note }) =>
    [
      `${checkpoints.length} of ${total} checkpoints`,
      ...checkpoints.map(rowText),
      ...damagedNote(damaged),
      next_cursor ? `Next page: cursor ${next_cursor}` : "",
      note ?? "",
    ]
      .filter(Boolean)
      .join("\n"),
  run: async (cairn, input) => {
    const { shortened, damaged, ...page } = await cairn.checkpoints.list(input);
    const fewer = page.checkpoints.length < Math.min(input.limit, page.total) && page.nextCursor !== undefined;
    const parts = [
      ...(shortened > 0 ? [`${shortened} shortened (use checkpoint_get for a full record)`] : []),
      ...(fewer ? [`${page.checkpoints.length} of ${input.limit} on this page (continue with next_cursor)`] : []),
    ];
    return {
      ...page,
      ...damagedField(damaged),
      ...(parts.length > 0 && { note: `Limited to ${input.maxTokens} tokens: ${parts.join("; ")}.` }),
    };
  },
});

const ResumedOutput = once(() =>
  z.object({
    level: z.string(),
    checkpoint: CheckpointOutput.partial({ description: true, context: true }).omit({ token_count: true }),
    text: z.string().describe("Text to read."),
    damaged: Damaged,
    note: z.string().optional(),
  }),
);

export const checkpointResume = operation({
  name: "checkpoint_resume",
  summary: "Resume work from the newest checkpoint, or from a given one.",
  input: () =>
    z.strictObject({
      project_path: ProjectPath,
      id: Id.optional().describe("Default: the newest."),
      level: z.enum(["summary", "context", "full"]).default("full").describe("context: without description."),
      max_tokens: MaxTokens,
      code_path: CodePath,
    }),
  output: ResumedOutput,
  access: "read",
  toolset: "core",
  cli: { positional: ["id"], examples: ["cairn checkpoint resume", "cairn checkpoint resume @2"] },
  mcp: { compact: compactResumed, alwaysLoad: true },
  render: ({ text: content, checkpoint, damaged, note }) =>
    [content, ...freshnessNote(checkpoint), ...damagedNote(damaged), note].filter(Boolean).join("\n\n"),
  run: async (cairn, input) => {
    const { damaged, ...resumed } = await cairn.checkpoints.resume(input);
    return { ...resumed, ...damagedField(damaged) };
  },
});

export const checkpointUpdate = operation({
  name: "checkpoint_update",
  summary: "Change fields of a checkpoint; omitted fields keep their values.",
  input: () =>
    z.strictObject({
      project_path: ProjectPath,
      id: Id,
      summary: text(LIMITS.summaryChars, 1).optional(),
      description: text(LIMITS.descriptionChars).optional(),
      context: Context.optional(),
      tags: Tags.optional(),
      ...AnchorFields,
    }),
  output: SavedOutput,
  access: "write",
  toolset: "core",
  mcp: { compact: compactSaved, unlisted: ["anchors", "supersedes"], searchHint: "correct a saved checkpoint" },
  cli: { positional: ["id"], examples: ['cairn checkpoint update 6c1f0a9e --summary "Lexer done"'] },
  render: ({ id, summary, redacted }) => [`Updated checkpoint ${id}: ${summary}`, ...redactionNote(redacted)].join("\n"),
  run: async (cairn, input, { signal }) => toSavedOutput(await cairn.checkpoints.update(input, { signal })),
});

export const checkpointDelete = operation({
  name: "checkpoint_delete",
  summary: "Delete a checkpoint; checkpoint_restore undoes it.",
  input: () => z.strictObject({ project_path: ProjectPath, id: Id }),
  output: () => Deletion,
  access: "write",
  annotations: { destructive: true },
  limits: { timeoutMs: LIMITS.listTimeoutMs },
  toolset: "core",
  mcp: { compact: ({ deleted, restorable_until }) => ({ deleted, restorable_until }), searchHint: "remove a saved checkpoint" },
  cli: {
    positional: ["id"],
    examples: ["cairn checkpoint delete 6c1f0a9e"],
    text: ({ id, restorable_until }) => `Deleted. Undo it until ${restorable_until.slice(0, 10)} with: cairn checkpoint restore ${id}`,
  },
  render: ({ restorable_until }) => `Deleted. checkpoint_restore undoes it until ${restorable_until.slice(0, 10)}.`,
  run: (cairn, input) => cairn.checkpoints.delete(input),
});

/** Returns the search results that fit into the budget, with a note on the others. */
export function fitResults(hits: readonly Hit<Checkpoint>[], maxTokens: number) {
  const fitted = fitCheckpoints(
    hits.map(({ record }) => record),
    maxTokens,
  );
  const results = fitted.records.map((checkpoint, index) => {
    const { score, found } = hits[index]!;
    return { checkpoint, score, distance: 1 - score, found };
  });
  return { results, ...fitNote(maxTokens, fitted, "checkpoint_get") };
}

type WireCheckpoint = z.output<typeof CheckpointOutput>;

/** A checkpoint in a list for agents: enough to choose by; checkpoint_get returns the rest. */
function compactRow({ id, created_at, summary, tags, ...anchored }: WireCheckpoint) {
  return { id, created_at: minuteOf(created_at), ...freshnessField(anchored), summary, tags };
}

/** Returns a checkpoint as a line of a list. */
export function rowText({ id, created_at, summary, tags, ...anchored }: WireCheckpoint): string {
  const labels = tags.length > 0 ? `  [${tags.join(", ")}]` : "";
  return [`${id}  ${minuteOf(created_at)}  ${summary}${labels}`, ...freshnessNote(anchored)].join("  ");
}

/** Returns the hits of a search as rows for agents. */
export function compactResults({ results, model: _, ...rest }: { results: z.output<typeof SearchResult>[]; model?: string | undefined }) {
  return { results: results.map(({ checkpoint, score }) => ({ score, ...compactRow(checkpoint) })), ...rest };
}

/** Returns a whole checkpoint without what the agent knows or does not need. */
function compactCheckpoint(checkpoint: z.output<ReturnType<typeof ResumedOutput>>["checkpoint"] & { note?: string | undefined }) {
  const { id, summary, tags, description, context, created_at, updated_at, note, ...anchored } = checkpoint;
  const changed = updated_at === created_at ? {} : { updated_at: minuteOf(updated_at) };
  return { id, created_at: minuteOf(created_at), ...changed, ...freshnessField(anchored), summary, tags, context, description, note };
}

function compactResumed({ level, checkpoint, text: content, damaged, note }: z.output<ReturnType<typeof ResumedOutput>>) {
  // A context that was too long for the budget is only in the text, which is cut.
  const cut = level !== "summary" && checkpoint.context === undefined;
  return { ...(cut ? { id: checkpoint.id, ...freshnessField(checkpoint), text: content } : compactCheckpoint(checkpoint)), damaged, note };
}

function compactSaved({ id, token_count, embedding_pending, redacted }: z.output<ReturnType<typeof SavedOutput>>) {
  return { id, token_count, embedding_pending, note: redactionNote(redacted)[0] };
}

/** Shortens a time to the minute. */
function minuteOf(time: string): string {
  return `${time.slice(0, 16)}Z`;
}

export const checkpointOperations = [
  checkpointSave,
  checkpointSearch,
  checkpointList,
  checkpointGet,
  checkpointResume,
  checkpointUpdate,
  checkpointDelete,
];
