import { z } from "zod";
import { KNOWLEDGE_KINDS, KNOWLEDGE_TEXTS, type Knowledge, knowledgeHash } from "../model/knowledge.ts";
import { LIMITS } from "../model/limits.ts";
import { orderTime } from "../model/record-order.ts";
import { problemOf } from "../operations/describe-issue.ts";
import { Id, text } from "../operations/schemas.ts";
import { type Redact, redactFields } from "../text/redact.ts";

export interface Restored {
  readonly imported: number;
  /** Records whose id existed already; they were skipped. */
  readonly present: number;
  /** By the position of the record in the input, from 1. */
  readonly problems: readonly { readonly record: number; readonly problem: string }[];
}

const Count = z.int().min(0);

/** A record of another database. Values derived from its content are computed again. */
const RestoredRecord = z
  .object({
    id: Id,
    kind: z.enum(KNOWLEDGE_KINDS),
    category: text(LIMITS.categoryChars),
    subcategory: text(LIMITS.categoryChars),
    question: text(LIMITS.questionChars, 1),
    answer: text(LIMITS.answerChars, 1),
    source: text(LIMITS.labelChars),
    successes: Count,
    uses: Count,
    createdAt: z.iso.datetime({ offset: true }),
    updatedAt: z.iso.datetime({ offset: true }),
  })
  .refine(({ successes, uses }) => successes <= uses, "successes: must not exceed uses");

/** Validates records and removes their secrets; the counts stay. Returns the valid ones and the problems of the others. */
export function readRestored(
  input: readonly unknown[],
  redact: Redact,
  now: string,
): { records: Knowledge[]; problems: Restored["problems"] } {
  const records: Knowledge[] = [];
  const problems: { record: number; problem: string }[] = [];
  for (const [index, one] of input.entries()) {
    const parsed = RestoredRecord.safeParse(one);
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      problems.push({
        record: index + 1,
        problem: `${issue?.path.join(".") || "record"}: ${issue ? problemOf(issue) : "is not valid"}`.slice(0, 300),
      });
      continue;
    }
    const { fields: content } = redactFields(parsed.data, KNOWLEDGE_TEXTS, redact);
    const createdAt = new Date(parsed.data.createdAt).toISOString();
    records.push({
      ...content,
      source: redact(content.source).text,
      contentHash: knowledgeHash(content),
      createdAt,
      updatedAt: new Date(parsed.data.updatedAt).toISOString(),
      createdOrder: orderTime(createdAt, now),
      revision: 1,
    });
  }
  return { records, problems };
}
