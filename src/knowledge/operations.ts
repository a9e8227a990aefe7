import { z } from "zod";
import { AnchorFields } from "../freshness/anchor-fields.ts";
import { AnchoredOutput, CodePath, FreshOnly, freshnessField, freshnessNote } from "../freshness/wire-schemas.ts";
import { SHARED_PROJECT_ID } from "../model/ids.ts";
import { KNOWLEDGE_KINDS, type Knowledge, successRate } from "../model/knowledge.ts";
import { LIMITS } from "../model/limits.ts";
import { assertMayTouch } from "../model/record-scope.ts";
import { operation } from "../operations/operation.ts";
import { Damaged, damagedField, damagedNote, Id, ListDeleted, MaxTokens, redactionNote, text } from "../operations/schemas.ts";
import { Explain, MatchField, WeightsField, weightsNote } from "../operations/search-schemas.ts";
import { Deletion, IdempotencyKey, PlaceFields } from "../operations/write-schemas.ts";
import { matchNote } from "../recall/fuse.ts";
import { fitNote } from "../text/fit-records.ts";
import { fitKnowledge } from "./fit.ts";
import type { SavedKnowledge } from "./service.ts";

export const KnowledgeOutput = z.object({
  id: z.string(),
  kind: z.enum(KNOWLEDGE_KINDS),
  category: z.string(),
  subcategory: z.string(),
  question: z.string(),
  answer: z.string(),
  content_hash: z.string(),
  success_rate: z.number().describe("(successes + 1) / (uses + 2)"),
  successes: z.int(),
  usage_count: z.int(),
  outdated: z.int().describe("Reports that it is outdated, since its last edit."),
  source: z.string(),
  ...AnchoredOutput,
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
  deleted_at: z.iso.datetime().optional().describe("Present if it is deleted."),
});

export const SavedOutput = KnowledgeOutput.extend({
  embedding_pending: z.boolean().optional().describe("true: found by keyword now, semantically once it is embedded."),
  redacted: z.array(z.object({ field: z.string(), kind: z.string(), count: z.int() })).describe("Secrets removed before storing."),
});

const FilterFields = {
  kind: z.enum(KNOWLEDGE_KINDS).optional(),
  category: text(LIMITS.categoryChars).optional(),
  subcategory: text(LIMITS.categoryChars).optional(),
};

const ContentFields = {
  kind: z.enum(KNOWLEDGE_KINDS).default("skill"),
  category: text(LIMITS.categoryChars).optional(),
  subcategory: text(LIMITS.categoryChars).optional(),
  question: text(LIMITS.questionChars, 1).describe("The question as it will be asked again; for a remediation, the error text."),
  answer: text(LIMITS.answerChars, 1).describe("What to do."),
};

const toOutput = (record: Knowledge) => ({ ...record, usageCount: record.uses, successRate: successRate(record) });
export const toSavedOutput = ({ embedded, ...record }: SavedKnowledge) => ({
  ...toOutput(record),
  ...(embedded ? {} : { embeddingPending: true }),
});

type WireKnowledge = z.output<typeof KnowledgeOutput>;

/** A record for agents. */
const compactKnowledge = ({ id, kind, category, subcategory, question, answer, success_rate, usage_count, ...rest }: WireKnowledge) => ({
  ...{ id, kind, category, subcategory, question, answer },
  ...freshnessField(rest),
  ...(usage_count > 0 && { success_rate, usage_count }),
});

const firstLine = (text: string) => text.split("\n", 1)[0]!;

const compactSaved = ({ id, embedding_pending, redacted }: z.output<typeof SavedOutput>) => ({
  id,
  embedding_pending,
  note: redactionNote(redacted)[0],
});

const FoundRank = z.object({ rank: z.int(), score: z.number() });

export const knowledgeSave = operation({
  name: "knowledge_save",
  summary: "Save a skill, remediation, troubleshooting step or FAQ answer.",
  input: z.strictObject({
    ...PlaceFields,
    id: Id.optional().describe("Default: generated."),
    ...ContentFields,
    ...AnchorFields,
    idempotency_key: IdempotencyKey,
  }),
  output: SavedOutput,
  access: "write",
  annotations: { idempotent: false },
  toolset: "core",
  mcp: {
    compact: compactSaved,
    unlisted: ["id", "subcategory", "anchors", "supersedes", "idempotency_key"],
    searchHint: "remember a fix, how-to or fact",
  },
  cli: {
    positional: ["question", "answer"],
    examples: [
      'cairn knowledge save "How do we release?" "npm version minor, then push the tag." --category ops',
      'cairn knowledge save "ECONNREFUSED 127.0.0.1:5432" "Start PostgreSQL." --kind remediation --scope shared',
    ],
  },
  render: ({ id, kind, question, redacted }) => [`Saved ${kind} ${id}: ${question}`, ...redactionNote(redacted)].join("\n"),
  async run(cairn, input, context) {
    assertMayTouch(input, context.mayTouch);
    return toSavedOutput(await cairn.knowledge.save(input, context));
  },
});

export const knowledgeSearch = operation({
  name: "knowledge_search",
  summary: "Find knowledge about a question or an error, in this project and shared.",
  description: "Paste an error unchanged. Then report with knowledge_feedback whether it helped.",
  input: z.strictObject({
    ...PlaceFields,
    scope: z.enum(["project", "shared"]).optional().describe("Default: both."),
    query: text(LIMITS.longQuestionChars, 1),
    ...FilterFields,
    top_k: z.int().min(1).max(LIMITS.listMax).default(5),
    ranking: z.enum(["similarity", "success"]).default("similarity").describe("success: 0.7 × similarity + 0.3 × success rate."),
    mode: z.enum(["hybrid", "semantic", "keyword"]).default("hybrid"),
    fresh_only: FreshOnly,
    max_tokens: MaxTokens,
    explain: Explain,
    code_path: CodePath,
  }),
  output: z.object({
    results: z.array(
      z.object({
        knowledge: KnowledgeOutput,
        scope: z.enum(["project", "shared"]),
        score: z.number().describe("Cosine similarity, 0 to 1."),
        rank_score: z.number(),
        confidence: z.enum(["high", "medium", "low"]),
        warning: z.string().optional(),
        same_error: z.boolean(),
        found: z
          .object({ semantic: FoundRank.optional(), keyword: FoundRank.optional() })
          .describe("Rank and score in each ranking that found it."),
      }),
    ),
    match: MatchField,
    weights: WeightsField,
    scopes: z.array(z.string()).describe("Scopes searched."),
    degraded: z.array(z.string()),
    damaged: Damaged,
    model: z.string().optional(),
    note: z.string().optional().describe("What was omitted and how to get it."),
  }),
  access: "read",
  limits: { timeoutMs: LIMITS.searchTimeoutMs },
  toolset: "core",
  mcp: {
    compact: ({ results, match, weights, degraded, damaged, note }) => ({
      match,
      weights,
      results: results.map(({ knowledge: { id, kind, question, answer, ...rest }, scope, score, confidence, warning, same_error }) => ({
        ...{ id, kind, ...(scope === "shared" && { scope }), score, confidence, ...freshnessField(rest), question, answer, warning },
        ...(same_error && { same_error }),
      })),
      degraded,
      damaged,
      note,
    }),
    rows: "results",
    unlisted: ["mode", "category", "subcategory", "ranking", "explain", "fresh_only"],
    searchHint: "known fixes for an error, how-to, FAQ",
  },
  cli: {
    positional: ["query"],
    examples: ['cairn knowledge search "how do we release"', "cairn knowledge search - --kind remediation --ranking success < error.log"],
  },
  render: ({ results, weights, degraded, damaged, note }) =>
    [
      ...(results.length === 0 ? ["No knowledge found."] : []),
      ...results.map(({ knowledge, scope, score, confidence, same_error, warning }) =>
        [
          `${score.toFixed(2)}  ${confidence}${same_error ? ", same error" : ""}  ${knowledge.kind} ${knowledge.id} (${scope})  ${firstLine(knowledge.question)}`,
          `  ${knowledge.answer.replaceAll("\n", "\n  ")}`,
          ...freshnessNote(knowledge).map((line) => `  ${line}`),
          ...(warning ? [`  ${warning}`] : []),
        ].join("\n"),
      ),
      ...weightsNote(weights),
      ...degraded.map((part) => `Note: ${part}.`),
      ...damagedNote(damaged),
      ...(note ? [note] : []),
    ].join("\n"),
  async run(cairn, { maxTokens, explain, ...input }, context) {
    const maySeeShared = context.mayTouch(SHARED_PROJECT_ID);
    const scope = input.scope ?? (maySeeShared ? "both" : "project");
    if (scope !== "both") assertMayTouch({ projectPath: input.projectPath, scope }, context.mayTouch);
    const { hits, damaged, weights, ...rest } = await cairn.knowledge.search({ ...input, scope }, context);
    const fitted = fitKnowledge(
      hits.map(({ record }) => record),
      maxTokens,
    );
    const results = fitted.records.map((record, index) => ({ ...hits[index], knowledge: toOutput(record) }));
    return {
      ...rest,
      ...(explain && { weights }),
      ...damagedField(damaged),
      results,
      ...matchNote({ match: rest.match, hits, ...fitNote(maxTokens, fitted, "knowledge_get") }),
    };
  },
});

export const knowledgeGet = operation({
  name: "knowledge_get",
  summary: "Read one knowledge record in full.",
  input: z.strictObject({ ...PlaceFields, id: Id, code_path: CodePath }),
  output: KnowledgeOutput,
  access: "read",
  toolset: "knowledge",
  mcp: { compact: compactKnowledge },
  cli: {
    positional: ["id"],
    examples: ["cairn knowledge get tmpl_109 --scope shared"],
    view: {
      record: [
        ...["question", "answer", "kind", "category", "subcategory", "freshness", "superseded_by", "outdated", "anchors"],
        ...["id", "source", "usage_count", "success_rate", "updated_at"],
      ],
    },
  },
  render: ({ id, kind, category, subcategory, question, answer, success_rate, usage_count, ...rest }) =>
    [
      question,
      [`${kind} ${id}`, [category, subcategory].filter(Boolean).join("/")].filter(Boolean).join(", "),
      ...(usage_count > 0 ? [`success rate ${success_rate.toFixed(2)} after ${usage_count} uses`] : []),
      ...freshnessNote(rest),
      answer,
    ].join("\n"),
  async run(cairn, input, context) {
    assertMayTouch(input, context.mayTouch);
    return toOutput(await cairn.knowledge.get(input));
  },
});

export const knowledgeList = operation({
  name: "knowledge_list",
  summary: "List knowledge, newest first.",
  input: z.strictObject({
    ...PlaceFields,
    ...FilterFields,
    source: text(LIMITS.labelChars).optional().describe("Only records of this import source."),
    limit: z.int().min(1).max(LIMITS.listMax).default(LIMITS.listDefault),
    cursor: text(LIMITS.cursorChars, 1).optional().describe("next_cursor of the previous page."),
    deleted: ListDeleted,
    max_tokens: MaxTokens,
    code_path: CodePath,
  }),
  output: z.object({
    knowledge: z.array(KnowledgeOutput),
    damaged: Damaged,
    total: z.int(),
    next_cursor: z.string().optional(),
    note: z.string().optional(),
  }),
  access: "read",
  toolset: "knowledge",
  mcp: {
    compact: ({ knowledge, ...rest }) => ({
      knowledge: knowledge.map(({ id, kind, question, ...anchored }) => ({
        ...{ id, kind, ...freshnessField(anchored) },
        question: firstLine(question),
      })),
      ...rest,
    }),
    rows: "knowledge",
  },
  cli: {
    examples: ["cairn knowledge list", "cairn knowledge list --scope shared --kind faq --limit 50", "cairn knowledge list --deleted"],
    view: {
      table: "knowledge",
      columns: ["id", "kind", "category", "freshness", "question", "usage_count"],
      optional: ["usage_count", "category", "freshness"],
    },
  },
  render: ({ knowledge, damaged, total, next_cursor, note }) =>
    [
      `${knowledge.length} of ${total}`,
      ...knowledge.map(({ id, kind, question, ...anchored }) =>
        [`${id}  ${kind}  ${firstLine(question)}`, ...freshnessNote(anchored)].join("  "),
      ),
      ...damagedNote(damaged),
      next_cursor ? `Next page: cursor ${next_cursor}` : "",
      note ?? "",
    ]
      .filter(Boolean)
      .join("\n"),
  async run(cairn, input, context) {
    assertMayTouch(input, context.mayTouch);
    const { records, damaged, shortened, ...rest } = await cairn.knowledge.list(input);
    return {
      knowledge: records.map(toOutput),
      ...damagedField(damaged),
      ...rest,
      ...fitNote(input.maxTokens, { shortened, omitted: 0 }, "knowledge_get"),
    };
  },
});

export const knowledgeUpdate = operation({
  name: "knowledge_update",
  summary: "Change fields of a knowledge record; omitted fields and its counts stay.",
  input: z.strictObject({
    ...PlaceFields,
    id: Id,
    ...FilterFields,
    question: ContentFields.question.optional(),
    answer: ContentFields.answer.optional(),
    ...AnchorFields,
  }),
  output: SavedOutput,
  access: "write",
  toolset: "knowledge",
  mcp: { compact: compactSaved },
  cli: { positional: ["id"], examples: ['cairn knowledge update release --answer "npm run release"'] },
  render: ({ id, question, redacted }) => [`Updated ${id}: ${question}`, ...redactionNote(redacted)].join("\n"),
  async run(cairn, input, context) {
    assertMayTouch(input, context.mayTouch);
    return toSavedOutput(await cairn.knowledge.update(input, context));
  },
});

export const knowledgeDelete = operation({
  name: "knowledge_delete",
  summary: "Delete a knowledge record; knowledge_restore undoes it.",
  input: z.strictObject({ ...PlaceFields, id: Id }),
  output: Deletion,
  access: "write",
  annotations: { destructive: true },
  limits: { timeoutMs: LIMITS.listTimeoutMs },
  toolset: "knowledge",
  cli: {
    positional: ["id"],
    examples: ["cairn knowledge delete tmpl_109 --scope shared"],
    text: ({ id, restorable_until }) => `Deleted. Undo it until ${restorable_until.slice(0, 10)} with: cairn knowledge restore ${id}`,
  },
  render: ({ restorable_until }) => `Deleted. knowledge_restore undoes it until ${restorable_until.slice(0, 10)}.`,
  async run(cairn, input, context) {
    assertMayTouch(input, context.mayTouch);
    return cairn.knowledge.delete(input);
  },
});

export const knowledgeFeedback = operation({
  name: "knowledge_feedback",
  summary: "Report whether a knowledge record helped.",
  input: z.strictObject({
    ...PlaceFields,
    id: Id,
    success: z.boolean().optional().describe("Whether it helped."),
    outdated: z.boolean().optional(),
    idempotency_key: IdempotencyKey,
  }),
  output: z.object({ id: z.string(), success_rate: z.number(), successes: z.int(), usage_count: z.int(), outdated: z.int() }),
  access: "write",
  annotations: { idempotent: false },
  toolset: "core",
  mcp: { unlisted: ["idempotency_key"], searchHint: "rate a known fix" },
  cli: {
    positional: ["id"],
    examples: ["cairn knowledge feedback tmpl_109 --success --scope shared", "cairn knowledge feedback release --outdated"],
  },
  render: ({ id, success_rate, usage_count, outdated }) =>
    `${id}: success rate ${success_rate.toFixed(2)} after ${usage_count} ${usage_count === 1 ? "use" : "uses"}${outdated > 0 ? `, reported as outdated ${outdated === 1 ? "once" : `${outdated} times`}` : ""}.`,
  async run(cairn, input, context) {
    assertMayTouch(input, context.mayTouch);
    return toOutput(await cairn.knowledge.feedback(input));
  },
});

export const knowledgeOperations = [
  knowledgeSave,
  knowledgeSearch,
  knowledgeGet,
  knowledgeList,
  knowledgeUpdate,
  knowledgeDelete,
  knowledgeFeedback,
];
