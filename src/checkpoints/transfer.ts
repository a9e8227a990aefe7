import { z } from "zod";
import { Anchors, redactAnchors } from "../freshness/wire-schemas.ts";
import { CHECKPOINT_TEXTS, type Checkpoint } from "../model/checkpoint.ts";
import type { DeletedRecord } from "../model/deleted-record.ts";
import { LIMITS } from "../model/limits.ts";
import { once } from "../model/once.ts";
import { orderTime } from "../model/record-order.ts";
import { checkpointText } from "../model/stored-record.ts";
import { problemOf } from "../operations/describe-issue.ts";
import { Context, Id, Tags, text } from "../operations/schemas.ts";
import { mapInSlices } from "../scheduling/map-in-slices.ts";
import { estimateTokens } from "../text/estimate-tokens.ts";
import { type Redact, type RedactedField, redactFields } from "../text/redact.ts";

export interface ImportProblem {
  /** Position of the record in the input, from 1. */
  readonly record: number;
  readonly problem: string;
}

export interface Imported {
  readonly imported: number;
  /** Records whose id existed already; an interrupted import can be repeated. */
  readonly present: number;
  readonly problems: readonly ImportProblem[];
  readonly redacted: readonly RedactedField[];
}

/** A record of an export. The project and everything derived from its text are not taken from the file. */
const ImportedRecord = once(() =>
  z.object({
    id: Id,
    summary: text(LIMITS.summaryChars, 1),
    description: text(LIMITS.descriptionChars).default(""),
    context: Context.default({}),
    tags: Tags.default([]),
    anchors: Anchors.default([]),
    superseded_by: text(LIMITS.idChars).default(""),
    created_at: z.iso.datetime({ offset: true }),
    updated_at: z.iso.datetime({ offset: true }).optional(),
    deleted_at: z.iso.datetime({ offset: true }).optional(),
  }),
);

export interface ReadRecords {
  readonly records: readonly Checkpoint[];
  /** Records that were deleted where they come from. */
  readonly deleted: readonly DeletedRecord<Checkpoint>[];
  readonly problems: readonly ImportProblem[];
  readonly redacted: readonly RedactedField[];
}

/** Validates records and removes their secrets. Returns the valid ones and the problems of the others. */
export async function readRecords(
  input: readonly unknown[],
  projectPath: string,
  { redact, now }: { readonly redact: Redact; readonly now: string },
): Promise<ReadRecords> {
  const records: Checkpoint[] = [];
  const deleted: DeletedRecord<Checkpoint>[] = [];
  const problems: ImportProblem[] = [];
  const redacted: RedactedField[] = [];
  const parsed = await mapInSlices(input, (one) => {
    const { success, data, error } = ImportedRecord().safeParse(one);
    return success ? redactFields(data, CHECKPOINT_TEXTS, redact) : error.issues[0];
  });
  for (const [index, one] of parsed.entries()) {
    if (!one || !("fields" in one)) {
      const problem = `${one?.path.join(".") || "record"}: ${one ? problemOf(one) : "is not valid"}`.slice(0, 300);
      problems.push({ record: index + 1, problem });
      continue;
    }
    const { fields, redacted: found } = one;
    redacted.push(...found);
    const { id, summary, description, context, tags, anchors, superseded_by, created_at, updated_at, deleted_at } = fields;
    const createdAt = new Date(created_at).toISOString();
    const updatedAt = updated_at === undefined ? createdAt : new Date(updated_at).toISOString();
    const record: Checkpoint = {
      ...{ id, projectPath, summary, description, context, tags, createdAt, updatedAt, supersededBy: superseded_by },
      anchors: redactAnchors(anchors, redact),
      createdOrder: orderTime(createdAt, now),
      updatedOrder: orderTime(updatedAt, now),
      tokenCount: estimateTokens(checkpointText({ summary, description })),
      revision: 1,
    };
    // A deletion in the future would never reach the end of its retention.
    if (deleted_at === undefined) records.push(record);
    else deleted.push({ record, deletedAt: orderTime(new Date(deleted_at).toISOString(), now) });
  }
  return { records, deleted, problems, redacted: sumByField(redacted) };
}

function sumByField(found: readonly RedactedField[]): RedactedField[] {
  const sums = new Map<string, RedactedField>();
  for (const { kind, field, count } of found) {
    const key = `${field} ${kind}`;
    sums.set(key, { kind, field, count: (sums.get(key)?.count ?? 0) + count });
  }
  return [...sums.values()];
}
