import { z } from "zod";
import { Anchors, redactAnchors } from "../freshness/wire-schemas.ts";
import type { DeletedRecord } from "../model/deleted-record.ts";
import { KNOWLEDGE_KINDS, KNOWLEDGE_TEXTS, type Knowledge, knowledgeHash } from "../model/knowledge.ts";
import { LIMITS } from "../model/limits.ts";
import { once } from "../model/once.ts";
import { orderTime } from "../model/record-order.ts";
import { problemOf } from "../operations/describe-issue.ts";
import { Id, text } from "../operations/schemas.ts";
import { type Redact, redactFields } from "../text/redact.ts";

/** What an import of another database's records did. */
export interface ImportedRecords {
  readonly imported: number;
  /** Records whose id existed already; they were skipped. */
  readonly present: number;
  /** By the position of the record in the input, from 1. */
  readonly problems: readonly { readonly record: number; readonly problem: string }[];
}

/** A record of another database. Values derived from its content are computed again. */
const ImportedRecord = once(() =>
  z
    .object({
      id: Id,
      kind: z.enum(KNOWLEDGE_KINDS),
      category: text(LIMITS.categoryChars),
      subcategory: text(LIMITS.categoryChars),
      question: text(LIMITS.questionChars, 1),
      answer: text(LIMITS.answerChars, 1),
      source: text(LIMITS.labelChars),
      successes: z.int().min(0),
      uses: z.int().min(0),
      outdated: z.int().min(0).default(0),
      anchors: Anchors.default([]),
      supersededBy: text(LIMITS.idChars).default(""),
      createdAt: z.iso.datetime({ offset: true }),
      updatedAt: z.iso.datetime({ offset: true }),
      deletedAt: z.iso.datetime({ offset: true }).optional(),
    })
    .refine(({ successes, uses }) => successes <= uses, "successes: must not exceed uses"),
);

/** Validates records and removes their secrets; the counts stay. Returns the valid ones and the problems of the others. */
export function readRecords(
  input: readonly unknown[],
  redact: Redact,
  now: string,
): { records: Knowledge[]; deleted: DeletedRecord<Knowledge>[]; problems: ImportedRecords["problems"] } {
  const records: Knowledge[] = [];
  const deleted: DeletedRecord<Knowledge>[] = [];
  const problems: { record: number; problem: string }[] = [];
  for (const [index, one] of input.entries()) {
    const parsed = ImportedRecord().safeParse(one);
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      problems.push({
        record: index + 1,
        problem: `${issue?.path.join(".") || "record"}: ${issue ? problemOf(issue) : "is not valid"}`.slice(0, 300),
      });
      continue;
    }
    const { deletedAt, ...fields } = parsed.data;
    const { fields: content } = redactFields(fields, KNOWLEDGE_TEXTS, redact);
    const createdAt = new Date(parsed.data.createdAt).toISOString();
    const record: Knowledge = {
      ...content,
      anchors: redactAnchors(content.anchors, redact),
      source: redact(content.source).text,
      contentHash: knowledgeHash(content),
      createdAt,
      updatedAt: new Date(parsed.data.updatedAt).toISOString(),
      createdOrder: orderTime(createdAt, now),
      revision: 1,
    };
    // A deletion in the future would never reach the end of its retention.
    if (deletedAt === undefined) records.push(record);
    else deleted.push({ record, deletedAt: orderTime(new Date(deletedAt).toISOString(), now) });
  }
  return { records, deleted, problems };
}
