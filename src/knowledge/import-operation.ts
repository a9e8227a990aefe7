import { z } from "zod";
import { KNOWLEDGE_KINDS } from "../model/knowledge.ts";
import { LIMITS } from "../model/limits.ts";
import { assertMayTouch } from "../model/place.ts";
import { operation } from "../operations/operation.ts";
import { PlaceFields, text } from "../operations/schemas.ts";
import { readLabelled, readRecords } from "./read-records.ts";

export const knowledgeImport = operation({
  name: "knowledge_import",
  summary: "Import questions and answers from JSON, JSON lines or CSV; only what changed is embedded.",
  description:
    "The source owns its records: importing it again adds, changes and removes until they equal the file, all in one step. Counts of use stay. A wrong row is named, and then nothing is imported.",
  input: z.strictObject({
    ...PlaceFields,
    content: text(LIMITS.importBytes, 1).describe("The file's content: fields id, category, subcategory, question, answer, kind."),
    source: text(LIMITS.labelChars, 1).describe("Which import this is, such as the file's name."),
    format: z.enum(["json", "jsonl", "csv"]).optional().describe("Default: told by the content."),
    kind: z.enum(KNOWLEDGE_KINDS).default("faq").describe("Of records that do not say."),
    force: z.boolean().default(false).describe("Write and embed everything anew."),
    dry_run: z.boolean().default(false).describe("Only tell what would be done."),
    keep_missing: z.boolean().default(false).describe("Keep records that are gone from the file."),
    validate: text(LIMITS.importBytes, 1)
      .optional()
      .describe("A file's content with query and id: measures how often the right record comes first."),
  }),
  output: z.object({
    added: z.int(),
    changed: z.int(),
    removed: z.int(),
    unchanged: z.int(),
    embedding_calls: z.int().describe("Texts that were embedded."),
    embedding_calls_saved: z.int().describe("Texts whose vector was still right."),
    embedding_pending: z.int(),
    redacted_secrets: z.int().describe("Secrets taken out before anything was stored."),
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
  annotations: { readOnly: false, destructive: true, idempotent: true },
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
      ...(result.dry_run ? [] : [`${result.embedding_calls} texts embedded, ${result.embedding_calls_saved} saved.`]),
      ...(result.embedding_pending > 0 ? [`${result.embedding_pending} vectors are still to come; words find these records already.`] : []),
      ...(result.redacted_secrets > 0 ? [`${result.redacted_secrets} secrets were taken out.`] : []),
      ...(result.ignored_fields.length > 0 ? [`Fields not used: ${result.ignored_fields.join(", ")}.`] : []),
      ...(result.validation
        ? [
            `Of ${result.validation.questions} questions the right record came first for ${percent(result.validation.top_1)}, among three for ${percent(result.validation.top_3)}, among five for ${percent(result.validation.top_5)}.`,
            ...result.validation.missed
              .slice(0, MISSED_SHOWN)
              .map(({ query, expected, first }) => `  ${JSON.stringify(query)}: ${first ?? "nothing"} came first, not ${expected}`),
          ]
        : []),
    ].join("\n"),
  async run(cairn, { content, format, kind, validate, ...input }, context) {
    assertMayTouch(input, context.mayTouch);
    const { records, ignored } = await readRecords(content, format, kind);
    const labelled = validate === undefined ? undefined : await readLabelled(validate);
    return { ...(await cairn.knowledge.import({ ...input, records, labelled }, context)), ignoredFields: ignored };
  },
});

const MISSED_SHOWN = 5;

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}
