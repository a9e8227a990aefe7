import { z } from "zod";
import type { Checkpoint } from "../model/checkpoint.ts";
import { LIMITS } from "../model/limits.ts";
import { operation } from "../operations/operation.ts";
import {
  Context,
  Damaged,
  damagedField,
  damagedNote,
  Explain,
  Id,
  MatchField,
  MaxTokens,
  ProjectPath,
  redactionNote,
  Tags,
  text,
  WeightsField,
} from "../operations/schemas.ts";
import { matchNote } from "../recall/fuse.ts";
import type { Hit } from "../recall/record-hits.ts";
import { fitNote } from "../text/estimate-tokens.ts";
import { fitCheckpoints } from "./fit.ts";
import type { SavedCheckpoint } from "./service.ts";
import { CheckpointOutput, FilterFields, SearchResult } from "./wire-schemas.ts";

const SavedOutput = CheckpointOutput.extend({
  embedding_pending: z.boolean().optional().describe("true: found by keyword now, semantically once it is embedded."),
  redacted: z
    .array(z.object({ kind: z.string(), field: z.string(), count: z.int() }))
    .optional()
    .describe("Secrets that were removed."),
});

const toSavedOutput = ({ embedded, ...checkpoint }: SavedCheckpoint) => (embedded ? checkpoint : { ...checkpoint, embeddingPending: true });

export const checkpointSave = operation({
  name: "checkpoint_save",
  summary: "Save your progress so that a later session can resume it.",
  input: z.strictObject({
    project_path: ProjectPath,
    summary: text(LIMITS.summaryChars, 1).describe("One line: what is done and what comes next."),
    description: text(LIMITS.descriptionChars).optional().describe("Details that a later session needs."),
    context: Context.optional().describe("Facts as key/value pairs, such as branch or failing test."),
    tags: Tags.optional().describe("Labels."),
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
  mcp: { compact: compactSaved, alwaysLoad: true },
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
  input: z.strictObject({
    project_path: ProjectPath,
    query: text(LIMITS.queryChars, 1).describe("A question or keywords."),
    top_k: z.int().min(1).max(LIMITS.listMax).default(5),
    mode: z.enum(["hybrid", "semantic", "keyword"]).default("hybrid"),
    ...FilterFields,
    max_tokens: MaxTokens,
    explain: Explain,
  }),
  output: z.object({
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
      columns: ["score", "checkpoint.id", "checkpoint.created_at", "checkpoint.summary", "found"],
      optional: ["checkpoint.created_at", "score"],
    },
  },
  mcp: { compact: compactResults, rows: "results", unlisted: ["mode", "tag_match", "explain"], alwaysLoad: true },
  render: ({ results, degraded, damaged, note }) =>
    [
      ...(results.length === 0 ? ["No checkpoints found."] : []),
      ...results.map(({ checkpoint, score }) => `${score.toFixed(2)}  ${rowText(checkpoint)}`),
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
  input: z.strictObject({ project_path: ProjectPath, id: Id, max_tokens: MaxTokens }),
  output: CheckpointOutput.extend({ note: z.string().optional() }),
  access: "read",
  toolset: "core",
  cli: {
    positional: ["id"],
    examples: ["cairn checkpoint get 6c1f0a9e", "cairn checkpoint get latest"],
    view: { record: ["summary", "description", "context", "tags", "id", "created_at", "updated_at", "token_count", "note"] },
  },
  mcp: { compact: compactCheckpoint, searchHint: "read a saved checkpoint" },
  render: (checkpoint) =>
    [
      checkpoint.summary,
      `${checkpoint.id}, ${checkpoint.created_at}${checkpoint.tags.length ? `, tags: ${checkpoint.tags.join(", ")}` : ""}`,
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
  input: z.strictObject({
    project_path: ProjectPath,
    limit: z.int().min(1).max(LIMITS.listMax).default(LIMITS.listDefault),
    offset: z.int().min(0).max(LIMITS.offsetMax).default(0),
    cursor: text(LIMITS.cursorChars, 1).optional().describe("next_cursor of the previous page."),
    sort_by: z.enum(["created_at", "updated_at"]).default("created_at"),
    ...FilterFields,
    max_tokens: MaxTokens,
  }),
  output: z.object({
    checkpoints: z.array(CheckpointOutput),
    damaged: Damaged,
    total: z.int(),
    next_cursor: z.string().optional(),
    note: z.string().optional(),
  }),
  access: "read",
  toolset: "core",
  cli: {
    examples: ["cairn checkpoint list", "cairn checkpoint list --limit 50 --sort-by updated_at --json"],
    view: { table: "checkpoints", columns: ["id", "created_at", "summary", "tags"], optional: ["tags"] },
  },
  mcp: {
    compact: ({ checkpoints, ...rest }) => ({ checkpoints: checkpoints.map(compactRow), ...rest }),
    rows: "checkpoints",
    unlisted: ["offset", "sort_by", "tag_match", "created_from", "created_before"],
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

const ResumedOutput = z.object({
  level: z.string(),
  checkpoint: CheckpointOutput.partial({ description: true, context: true }).omit({ token_count: true }),
  text: z.string().describe("Text to read."),
  damaged: Damaged,
  note: z.string().optional(),
});

export const checkpointResume = operation({
  name: "checkpoint_resume",
  summary: "Resume work from the newest checkpoint, or from a given one.",
  input: z.strictObject({
    project_path: ProjectPath,
    id: Id.optional().describe("Default: the newest."),
    level: z.enum(["summary", "context", "full"]).default("full").describe("context: without description."),
    max_tokens: MaxTokens,
  }),
  output: ResumedOutput,
  access: "read",
  toolset: "core",
  cli: { positional: ["id"], examples: ["cairn checkpoint resume", "cairn checkpoint resume @2"] },
  mcp: { compact: compactResumed, alwaysLoad: true },
  render: ({ text: content, damaged, note }) => [content, ...damagedNote(damaged), note].filter(Boolean).join("\n\n"),
  run: async (cairn, input) => {
    const { damaged, ...resumed } = await cairn.checkpoints.resume(input);
    return { ...resumed, ...damagedField(damaged) };
  },
});

export const checkpointUpdate = operation({
  name: "checkpoint_update",
  summary: "Change fields of a checkpoint; omitted fields keep their values.",
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
  toolset: "core",
  mcp: { compact: compactSaved, searchHint: "correct a saved checkpoint" },
  cli: { positional: ["id"], examples: ['cairn checkpoint update 6c1f0a9e --summary "Lexer done"'] },
  render: ({ id, summary, redacted }) => [`Updated checkpoint ${id}: ${summary}`, ...redactionNote(redacted)].join("\n"),
  run: async (cairn, input, { signal }) => toSavedOutput(await cairn.checkpoints.update(input, { signal })),
});

export const checkpointDelete = operation({
  name: "checkpoint_delete",
  summary: "Delete a checkpoint permanently.",
  input: z.strictObject({ project_path: ProjectPath, id: Id }),
  output: z.object({ deleted: z.boolean() }),
  access: "write",
  annotations: { destructive: true },
  limits: { timeoutMs: LIMITS.listTimeoutMs },
  toolset: "core",
  mcp: { compact: (output) => output, searchHint: "remove a saved checkpoint" },
  cli: { positional: ["id"], examples: ["cairn checkpoint delete 6c1f0a9e"] },
  render: ({ deleted }) => (deleted ? "Deleted." : "No such checkpoint."),
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
function compactRow({ id, created_at, summary, tags }: WireCheckpoint) {
  return { id, created_at: minuteOf(created_at), summary, tags };
}

/** Returns a checkpoint as a line of a list. */
export function rowText({ id, created_at, summary, tags }: WireCheckpoint): string {
  return `${id}  ${minuteOf(created_at)}  ${summary}${tags.length > 0 ? `  [${tags.join(", ")}]` : ""}`;
}

/** Returns the hits of a search as rows for agents. */
export function compactResults({ results, model: _, ...rest }: { results: z.output<typeof SearchResult>[]; model?: string | undefined }) {
  return { results: results.map(({ checkpoint, score }) => ({ score, ...compactRow(checkpoint) })), ...rest };
}

/** Returns a whole checkpoint without what the agent knows or does not need. */
function compactCheckpoint(checkpoint: z.output<typeof ResumedOutput>["checkpoint"] & { note?: string | undefined }) {
  const { id, summary, tags, description, context, created_at, updated_at, note } = checkpoint;
  const changed = updated_at === created_at ? {} : { updated_at: minuteOf(updated_at) };
  return { id, created_at: minuteOf(created_at), ...changed, summary, tags, context, description, note };
}

function compactResumed({ level, checkpoint, text: content, damaged, note }: z.output<typeof ResumedOutput>) {
  // A context that was too long for the budget is only in the text, which is cut.
  const cut = level !== "summary" && checkpoint.context === undefined;
  return { ...(cut ? { id: checkpoint.id, text: content } : compactCheckpoint(checkpoint)), damaged, note };
}

function compactSaved({ id, token_count, embedding_pending, redacted }: z.output<typeof SavedOutput>) {
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
