import { z } from "zod";
import { FreshOnly } from "../freshness/wire-schemas.ts";
import { LIMITS } from "../model/limits.ts";
import { operation } from "../operations/operation.ts";
import { Damaged, damagedField, damagedNote, MaxTokens, ProjectPath, text } from "../operations/schemas.ts";
import { MatchField } from "../operations/search-schemas.ts";
import { OLDER_THAN_FORMS, OlderThan } from "../operations/write-schemas.ts";
import { matchNote } from "../recall/fuse.ts";
import { olderThanTime } from "../text/point-in-time.ts";
import { checkpointDaysAll, checkpointListAll } from "./all-operations.ts";
import { checkpointPurge, checkpointRestore } from "./deletion-operations.ts";
import { compactResults, fitResults, rowText } from "./operations.ts";
import { DayCounts, SearchResult, UtcOffset } from "./search-schemas.ts";
import { CheckpointOutput, FilterFields, TextFilter } from "./wire-schemas.ts";

const projectCount = (count: number) => `${count} ${count === 1 ? "project" : "projects"}`;

export const checkpointSearchAll = operation({
  name: "checkpoint_search_all",
  summary: "Find checkpoints in every project that you may access.",
  description: "Searches each project separately. Results of different embedding models are merged by rank.",
  input: z.strictObject({
    query: text(LIMITS.queryChars, 1).describe("A question or keywords."),
    top_k: z.int().min(1).max(LIMITS.listMax).default(5),
    mode: z.enum(["hybrid", "semantic", "keyword"]).default("hybrid"),
    ...FilterFields,
    fresh_only: FreshOnly,
    max_tokens: MaxTokens,
  }),
  output: z.object({
    results: z.array(SearchResult),
    match: MatchField,
    degraded: z.array(z.string()),
    damaged: Damaged,
    projects: z.int().describe("Projects searched."),
    partial: z.boolean().describe("True if some projects were not searched; degraded has the reason."),
    merged_by: z.enum(["score", "rank"]),
    note: z.string().optional(),
  }),
  access: "read",
  limits: { timeoutMs: LIMITS.searchTimeoutMs },
  toolset: "admin",
  mcp: {
    compact: ({ results, ...rest }) => ({
      ...rest,
      results: compactResults({ results }).results.map((row, index) => ({ project_path: results[index]!.checkpoint.project_path, ...row })),
    }),
    rows: "results",
  },
  cli: {
    positional: ["query"],
    examples: ['cairn checkpoint search-all "how did we rotate the certificates"'],
    view: {
      table: "results",
      columns: ["checkpoint.id", "checkpoint.created_at", "checkpoint.summary", "checkpoint.project_path", "found"],
      optional: ["checkpoint.created_at", "found"],
    },
  },
  render: ({ results, degraded, damaged, projects, note }) =>
    [
      results.length === 0 ? `No checkpoints found in ${projectCount(projects)}.` : `From ${projectCount(projects)}:`,
      ...results.map(({ checkpoint, score }) => `${score.toFixed(2)}  ${checkpoint.project_path}  ${rowText(checkpoint)}`),
      ...degraded.map((part) => `Note: ${part}.`),
      ...damagedNote(damaged),
      ...(note ? [note] : []),
    ].join("\n"),
  run: async (cairn, { maxTokens, ...input }, { signal, mayTouch }) => {
    const { hits, damaged, ...answer } = await cairn.checkpoints.searchAll({ ...input, mayTouch }, { signal });
    const { results, note } = fitResults(hits, maxTokens);
    return { ...answer, ...damagedField(damaged), results, ...matchNote({ match: answer.match, hits, note }) };
  },
});

export const checkpointTags = operation({
  name: "checkpoint_tags",
  summary: "List the tags of this project's checkpoints with their counts.",
  input: z.strictObject({ project_path: ProjectPath, limit: z.int().min(1).max(LIMITS.tagsListed).default(50) }),
  output: z.object({ tags: z.array(z.object({ tag: z.string(), count: z.int() })) }),
  access: "read",
  toolset: "admin",
  cli: { examples: ["cairn checkpoint tags", "cairn tags --limit 10"], view: { table: "tags", columns: ["tag", "count"] } },
  render: ({ tags }) => tags.map(({ tag, count }) => `${count}  ${tag}`).join("\n") || "No tags.",
  run: (cairn, input) => cairn.checkpoints.tags(input),
});

export const checkpointDays = operation({
  name: "checkpoint_days",
  summary: "Count this project's checkpoints per day, the latest day first.",
  input: z.strictObject({
    project_path: ProjectPath,
    ...FilterFields,
    text: TextFilter,
    utc_offset_minutes: UtcOffset,
    limit: z.int().min(1).max(LIMITS.daysListed).default(90),
  }),
  output: DayCounts,
  access: "read",
  toolset: "admin",
  cli: {
    examples: ["cairn checkpoint days", "cairn checkpoint days --context branch=main"],
    view: { table: "days", columns: ["day", "count"] },
  },
  render: ({ days }) => days.map(({ day, count }) => `${day}  ${count}`).join("\n") || "No checkpoints.",
  run: (cairn, input) => cairn.checkpoints.days(input),
});

export const checkpointPrune = operation({
  name: "checkpoint_prune",
  summary: "Erase old checkpoints by age, count or both.",
  description: "With both, erases only checkpoints that are older and not among the newest. It cannot be undone: try a dry run first.",
  input: z.strictObject({
    project_path: ProjectPath,
    older_than: OlderThan.optional().describe(OLDER_THAN_FORMS),
    keep_last: z.int().min(0).max(LIMITS.offsetMax).optional().describe("Newest checkpoints to keep in any case."),
    dry_run: z.boolean().default(false).describe("Only report what would be deleted."),
  }),
  output: z.object({
    matched: z.int(),
    deleted: z.int(),
    dry_run: z.boolean(),
    examples: z.array(z.object({ id: z.string(), summary: z.string(), created_at: z.string() })),
  }),
  access: "write",
  annotations: { destructive: true },
  limits: { timeoutMs: LIMITS.upkeepTimeoutMs },
  toolset: "admin",
  cli: {
    examples: ["cairn checkpoint prune --older-than 90d --keep-last 100 --dry-run", "cairn checkpoint prune --keep-last 1000"],
    cancelled: "Checkpoints that were deleted stay deleted; the others are unchanged.",
  },
  render: ({ matched, deleted, dry_run, examples }) =>
    [
      dry_run ? `${matched} checkpoints would be deleted.` : `${deleted} checkpoints were deleted.`,
      ...examples.map(({ id, summary, created_at }) => `  ${created_at.slice(0, 10)}  ${id}  ${summary}`),
      ...(matched > examples.length ? [`  … and ${matched - examples.length} older ones`] : []),
    ].join("\n"),
  run: (cairn, { olderThan, ...input }, { signal, progress }) => {
    const createdBefore = olderThan === undefined ? undefined : olderThanTime(olderThan, new Date().toISOString());
    return cairn.checkpoints.prune({ ...input, createdBefore }, { signal, progress });
  },
});

export const checkpointExport = operation({
  name: "checkpoint_export",
  summary: "Export all checkpoints of a project, page by page.",
  input: z.strictObject({
    project_path: ProjectPath,
    limit: z.int().min(1).max(LIMITS.transferRecords).default(LIMITS.transferRecords),
    cursor: text(LIMITS.cursorChars, 1).optional().describe("next_cursor of the previous page."),
    without_deleted: z.boolean().default(false).describe("Leave out deleted checkpoints, which come last and have deleted_at."),
  }),
  output: z.object({ records: z.array(CheckpointOutput), damaged: Damaged, total: z.int(), next_cursor: z.string().optional() }),
  access: "read",
  limits: { timeoutMs: LIMITS.searchTimeoutMs },
  toolset: "admin",
  render: ({ records, total, next_cursor }) =>
    [...records.map((record) => JSON.stringify(record)), next_cursor ? `Next page of ${total}: cursor ${next_cursor}` : ""]
      .filter(Boolean)
      .join("\n"),
  run: async (cairn, input) => {
    const { damaged, ...page } = await cairn.checkpoints.export(input);
    return { ...page, ...damagedField(damaged) };
  },
});

export const checkpointImport = operation({
  name: "checkpoint_import",
  summary: "Import exported checkpoints into a project; existing ids are skipped.",
  input: z.strictObject({
    project_path: ProjectPath,
    // States explicitly that any field is accepted: each record is validated on its own.
    records: z
      .array(z.record(z.string(), z.unknown()).meta({ additionalProperties: true }))
      .min(1)
      .max(LIMITS.transferRecords),
  }),
  output: z.object({
    imported: z.int(),
    present: z.int().describe("Records whose id existed already."),
    problems: z.array(z.object({ record: z.int(), problem: z.string() })).describe("Rejected records with the reason."),
    redacted: z.array(z.object({ kind: z.string(), field: z.string(), count: z.int() })).describe("Secrets that were removed."),
  }),
  access: "write",
  limits: { timeoutMs: LIMITS.upkeepTimeoutMs },
  toolset: "admin",
  render: ({ imported, present, problems }) =>
    [
      `${imported} checkpoints imported, ${present} existed already, ${problems.length} rejected.`,
      ...problems.map(({ record, problem }) => `  record ${record}: ${problem}`),
    ].join("\n"),
  run: (cairn, input, { signal, progress }) => cairn.checkpoints.import(input, { signal, progress }),
});

export const upkeepOperations = [
  checkpointRestore,
  checkpointPurge,
  checkpointSearchAll,
  checkpointListAll,
  checkpointDaysAll,
  checkpointTags,
  checkpointDays,
  checkpointPrune,
  checkpointExport,
  checkpointImport,
];
