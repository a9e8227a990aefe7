import { z } from "zod";
import { AnchorFields } from "../freshness/anchor-fields.ts";
import { AnchoredOutput, CodePath, freshnessField, freshnessNote } from "../freshness/wire-schemas.ts";
import { LIMITS } from "../model/limits.ts";
import { operation } from "../operations/operation.ts";
import { Id, ProjectPath, text } from "../operations/schemas.ts";
import { REVIEW_ACTIONS, REVIEWED } from "./service.ts";

const ReviewItem = z.object({
  collection: z.enum(REVIEWED),
  id: z.string(),
  title: z.string(),
  uses: z.int(),
  outdated: z.int().describe("Reports that it is outdated."),
  ...AnchoredOutput,
  reason: z.string().optional().describe("Why it is listed."),
  updated_at: z.iso.datetime(),
});

export const reviewList = operation({
  name: "review_list",
  summary: "List records that no longer match the code, the most used first.",
  description: "Changed, gone and renamed code, replaced records, and knowledge reported as outdated. Settle each with review_resolve.",
  input: z.strictObject({
    project_path: ProjectPath,
    limit: z.int().min(1).max(LIMITS.listMax).default(LIMITS.listDefault),
    all: z.boolean().default(false).describe("Return every anchored record, stale or not."),
    code_path: CodePath,
  }),
  output: z.object({ records: z.array(ReviewItem), total: z.int(), scanned: z.int().describe("Newest records that were checked.") }),
  access: "read",
  limits: { timeoutMs: LIMITS.searchTimeoutMs },
  toolset: "knowledge",
  cli: {
    examples: ["cairn review", "cairn review list --limit 50"],
    view: {
      table: "records",
      columns: ["collection", "id", "uses", "title", "reason"],
      optional: ["uses"],
    },
  },
  mcp: {
    compact: ({ records, total }) => ({
      total,
      records: records.map(({ collection, id, title, uses, ...rest }) => ({ collection, id, title, uses, ...freshnessField(rest) })),
    }),
    rows: "records",
    unlisted: ["all"],
  },
  render: ({ records, total, scanned }) =>
    [
      total === 0 ? `Nothing to review among ${scanned} records.` : `${records.length} of ${total} to review`,
      ...records.map(({ collection, id, title, uses, ...rest }) =>
        [`${collection} ${id}  ${uses} uses  ${title}`, ...freshnessNote(rest)].join("  "),
      ),
    ].join("\n"),
  run: (cairn, input, { signal }) => cairn.reviews.list(input, { signal }),
});

export const reviewResolve = operation({
  name: "review_resolve",
  summary: "Settle a record under review: keep it as it is, update its text, or retire it.",
  description: "keep and update anchor the record to the code as it is now. retire deletes it.",
  input: z.strictObject({
    project_path: ProjectPath,
    action: z.enum(REVIEW_ACTIONS),
    id: Id,
    collection: z.enum(REVIEWED).describe("As review_list returns it."),
    summary: text(LIMITS.summaryChars, 1).optional().describe("New summary of a checkpoint."),
    description: text(LIMITS.descriptionChars).optional(),
    question: text(LIMITS.questionChars, 1).optional().describe("New question of a knowledge record."),
    answer: text(LIMITS.answerChars, 1).optional(),
    anchors: AnchorFields.anchors,
    code_path: CodePath,
  }),
  output: z.object({ id: z.string(), action: z.enum(REVIEW_ACTIONS) }),
  access: "write",
  annotations: { destructive: true },
  toolset: "knowledge",
  mcp: { unlisted: ["anchors"] },
  cli: {
    positional: ["action", "id"],
    examples: [
      "cairn review resolve keep 6c1f0a9e --collection checkpoint",
      'cairn review resolve update release --collection knowledge --answer "npm run release"',
    ],
  },
  render: ({ id, action }) => `${{ keep: "Kept", update: "Updated", retire: "Retired" }[action]} ${id}.`,
  run: (cairn, input, { signal }) => cairn.reviews.resolve(input, { signal }),
});

export const reviewOperations = [reviewList, reviewResolve];
