import { z } from "zod";
import { AnchorFields } from "../freshness/anchor-fields.ts";
import { CodePath } from "../freshness/wire-schemas.ts";
import { KNOWLEDGE_KINDS } from "../model/knowledge.ts";
import { LIMITS } from "../model/limits.ts";
import { assertMayTouch } from "../model/record-scope.ts";
import { operation } from "../operations/operation.ts";
import { Id, text } from "../operations/schemas.ts";
import { PlaceFields } from "../operations/write-schemas.ts";
import { readLabelled, readRecords } from "./read-records.ts";

export const knowledgeImport = operation({
  name: "knowledge_import",
  summary: "Import questions and answers from JSON, JSON Lines or CSV, embedding only changes.",
  description:
    "A source owns its records: importing it again adds, changes and deletes them atomically until they equal the file. Usage counts stay. An invalid row rejects the whole import.",
  input: z.strictObject({
    ...PlaceFields,
    content: text(LIMITS.importBytes, 1).describe(
      "File content with the fields id, category, subcategory, question, answer, kind, created_at, updated_at.",
    ),
    source: text(LIMITS.labelChars, 1).describe("Name of the import, such as the file name."),
    format: z.enum(["json", "jsonl", "csv"]).optional().describe("Default: detected from the content."),
    kind: z.enum(KNOWLEDGE_KINDS).default("faq").describe("Kind of records without one."),
    force: z.boolean().default(false).describe("Write and embed every record again."),
    dry_run: z.boolean().default(false).describe("Only report what would change."),
    keep_missing: z.boolean().default(false).describe("Keep records that are gone from the file."),
    validate: text(LIMITS.importBytes, 1)
      .optional()
      .describe("File content with query and id: measures how often the search returns the right record."),
    anchors: z
      .record(Id, AnchorFields.anchors.unwrap())
      .optional()
      .describe("Files, symbols, commits or branches that records depend on, by their ids. Default: those in their texts."),
    code_path: CodePath,
  }),
  output: z.object({
    added: z.int(),
    changed: z.int(),
    removed: z.int(),
    unchanged: z.int(),
    embedding_calls: z.int().describe("Texts embedded."),
    embedding_calls_saved: z.int().describe("Texts whose vector was reused."),
    embedding_pending: z.int(),
    redacted_secrets: z.int().describe("Secrets removed before storing."),
    dry_run: z.boolean(),
    ignored_fields: z.array(z.string()),
    validation: z
      .object({
        questions: z.int(),
        top_1: z.number(),
        top_3: z.number(),
        top_5: z.number(),
        missed: z.array(z.object({ query: z.string(), expected: z.string(), first: z.string().optional() })),
      })
      .optional(),
  }),
  access: "write",
  annotations: { destructive: true },
  limits: { timeoutMs: LIMITS.importTimeoutMs, bodyBytes: 2 * LIMITS.importBytes },
  toolset: "admin",
  cli: {
    positional: ["content"],
    files: { content: { nameInto: "source" }, validate: {} },
    examples: ["cairn knowledge import faq.csv --scope shared", "cairn knowledge import faq.json --dry-run --validate labelled.csv"],
  },
  render: (result) =>
    [
      `${result.dry_run ? "Would import" : "Imported"}: ${result.added} new, ${result.changed} changed, ${result.removed} removed, ${result.unchanged} unchanged.`,
      ...(result.dry_run ? [] : [`${result.embedding_calls} texts embedded, ${result.embedding_calls_saved} reused.`]),
      ...(result.embedding_pending > 0
        ? [`${result.embedding_pending} records are found by keyword until their embeddings are ready.`]
        : []),
      ...(result.redacted_secrets > 0 ? [`${result.redacted_secrets} secrets removed.`] : []),
      ...(result.ignored_fields.length > 0 ? [`Ignored fields: ${result.ignored_fields.join(", ")}.`] : []),
      ...(result.validation
        ? [
            `Right record for ${result.validation.questions} questions: first ${percent(result.validation.top_1)}, top 3 ${percent(result.validation.top_3)}, top 5 ${percent(result.validation.top_5)}.`,
            ...result.validation.missed
              .slice(0, MISSED_SHOWN)
              .map(({ query, expected, first }) => `  ${JSON.stringify(query)}: expected ${expected}, found ${first ?? "nothing"}`),
          ]
        : []),
    ].join("\n"),
  async run(cairn, { content, format, kind, validate, anchors = {}, ...input }, context) {
    assertMayTouch(input, context.mayTouch);
    const { records, ignored } = await readRecords(content, format, kind);
    const labelled = validate === undefined ? undefined : await readLabelled(validate);
    const anchored = records.map((record) => (Object.hasOwn(anchors, record.id) ? { ...record, anchors: anchors[record.id] } : record));
    return { ...(await cairn.knowledge.import({ ...input, records: anchored, labelled }, context)), ignoredFields: ignored };
  },
});

const MISSED_SHOWN = 5;

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}
