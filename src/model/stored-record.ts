import { parseAnchors } from "./anchor.ts";
import type { Checkpoint } from "./checkpoint.ts";
import type { DamagedRecord, RecordCollection } from "./damaged-record.ts";
import { framedHash } from "./ids.ts";
import { KNOWLEDGE_KINDS, type Knowledge, type KnowledgeKind } from "./knowledge.ts";

/** A row as an engine returned it. In a damaged row any value may stand in any column. */
export type RawRow = Readonly<Record<string, unknown>>;

/** A record, or why the row is not one. */
export type StoredRecord<T> = { readonly record: T } | { readonly damaged: DamagedRecord };

/** Returns the text to embed for a checkpoint: summary and description. Context pairs are too noisy. */
export function checkpointText({ summary, description }: { readonly summary: string; readonly description: string }): string {
  return description ? `${summary}\n\n${description}` : summary;
}

/** Characters up to which a text is one piece. The models read about that much; beyond, one vector blurs the topics. */
export const WHOLE_CHARS = 1_500;
/** Characters of a part of a longer text. */
export const PART_CHARS = 500;
/** Limit of pieces per record: the whole text and its parts. The vector of a piece has the key `record key × PIECES_MAX + piece`. */
export const PIECES_MAX = 16;

/** Returns the number of pieces that a text is embedded in: follows from its length alone, so stores need not divide it. */
export function countPieces(text: string): number {
  return text.length <= WHOLE_CHARS ? 1 : Math.min(PIECES_MAX, 1 + Math.ceil(text.length / PART_CHARS));
}

/**
 * Returns the texts that a stored context contains if and only if it has these pairs: quotes inside keys and values are escaped, so the
 * text of a pair cannot occur within one. Unlike JSON functions of the engines, a search for them never fails at a damaged row.
 */
export function contextPairs(context: Readonly<Record<string, string>>): string[] {
  return Object.entries(context).map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`);
}

/** The checksum that a checkpoint is stored with. Its place in the order is not part of it, because a wrong clock may change that later. */
export function checkpointChecksum(checkpoint: Checkpoint): string {
  const { id, summary, description, context, tags, anchors, supersededBy, tokenCount, createdAt, updatedAt, revision } = checkpoint;
  const texts = [id, summary, description, JSON.stringify(context), JSON.stringify(anchors), supersededBy];
  return framedHash("checkpoint", ...texts, tokenCount, createdAt, updatedAt, revision, tags.length, ...tags);
}

/** The checksum that a knowledge record is stored with, its counts included. */
export function knowledgeChecksum(record: Knowledge): string {
  const { id, kind, category, subcategory, question, answer, contentHash, source, anchors, supersededBy } = record;
  const { successes, uses, outdated, createdAt, updatedAt, revision } = record;
  const texts = [id, kind, category, subcategory, question, answer, contentHash, source, JSON.stringify(anchors), supersededBy];
  return framedHash("knowledge", ...texts, successes, uses, outdated, createdAt, updatedAt, revision);
}

/** Reads a row of `checkpoints` with its `tags`, and verifies it. */
export function readCheckpoint(row: RawRow, projectPath: string): StoredRecord<Checkpoint> {
  const context = parseContext(row.context);
  const anchors = parseAnchors(row.anchors);
  const tags = row.tags;
  const problem =
    columnProblem(row, CHECKPOINT_COLUMNS) ??
    (context === undefined ? "context is not valid JSON" : undefined) ??
    (anchors === undefined ? BAD_ANCHORS : undefined) ??
    (Array.isArray(tags) && tags.every((tag) => typeof tag === "string") ? undefined : "tags are not a list of texts");
  if (problem !== undefined) return { damaged: damagedRow("checkpoints", row, problem) };
  const { id, summary, description, token_count, superseded_by, created_at, updated_at, created_order, updated_order, revision } =
    row as unknown as { [column in keyof typeof CHECKPOINT_COLUMNS]: never };
  const times = { createdAt: created_at, updatedAt: updated_at, createdOrder: created_order, updatedOrder: updated_order };
  const record: Checkpoint = {
    ...{ id, projectPath, summary, description, context: context!, tags: tags as string[] },
    ...{ anchors: anchors!, supersededBy: superseded_by, tokenCount: token_count },
    ...times,
    revision,
  };
  return checkpointChecksum(record) === row.checksum ? { record } : { damaged: damagedRow("checkpoints", row, MISMATCH) };
}

/** Reads a row of `knowledge` and verifies it. */
export function readKnowledge(row: RawRow): StoredRecord<Knowledge> {
  const anchors = parseAnchors(row.anchors);
  const problem =
    columnProblem(row, KNOWLEDGE_COLUMNS) ??
    (anchors === undefined ? BAD_ANCHORS : undefined) ??
    (KNOWLEDGE_KINDS.includes(row.kind as KnowledgeKind) ? undefined : "its kind is unknown");
  if (problem !== undefined) return { damaged: damagedRow("knowledge", row, problem) };
  const { id, kind, category, subcategory, question, answer, successes, uses, outdated, source, revision } = row as unknown as Knowledge;
  const times = { createdAt: row.created_at as string, updatedAt: row.updated_at as string, createdOrder: row.created_order as string };
  const contentHash = row.content_hash as string;
  const record: Knowledge = {
    ...{ id, kind, category, subcategory, question, answer, contentHash, successes, uses, outdated, source },
    ...{ anchors: anchors!, supersededBy: row.superseded_by as string },
    ...times,
    revision,
  };
  return knowledgeChecksum(record) === row.checksum ? { record } : { damaged: damagedRow("knowledge", row, MISMATCH) };
}

/** Separates sound records from damaged ones and keeps their order. */
export function splitStored<T>(stored: readonly StoredRecord<T>[]): { records: T[]; damaged: DamagedRecord[] } {
  const records: T[] = [];
  const damaged: DamagedRecord[] = [];
  for (const one of stored) {
    if ("record" in one) records.push(one.record);
    else damaged.push(one.damaged);
  }
  return { records, damaged };
}

/** The type of each column. Stores select exactly these columns; checkpoints also select `tags`. */
export const CHECKPOINT_COLUMNS = {
  id: "text",
  summary: "text",
  description: "text",
  context: "text",
  anchors: "text",
  superseded_by: "text",
  token_count: "integer",
  created_at: "time",
  updated_at: "time",
  created_order: "time",
  updated_order: "time",
  revision: "integer",
  checksum: "text",
} as const;

export const KNOWLEDGE_COLUMNS = {
  id: "text",
  kind: "text",
  category: "text",
  subcategory: "text",
  question: "text",
  answer: "text",
  content_hash: "text",
  successes: "integer",
  uses: "integer",
  outdated: "integer",
  source: "text",
  anchors: "text",
  superseded_by: "text",
  created_at: "time",
  updated_at: "time",
  created_order: "time",
  revision: "integer",
  checksum: "text",
} as const;

const BAD_ANCHORS = "anchors are not a list";
const MISMATCH = "its content does not match its checksum";

function columnProblem(row: RawRow, columns: Readonly<Record<string, "text" | "integer" | "time">>): string | undefined {
  for (const [name, type] of Object.entries(columns)) {
    const value = row[name];
    if (value === null || value === undefined) return `${name} is empty`;
    if (type === "integer") {
      if (!Number.isSafeInteger(value)) return `${name} is not a whole number`;
    } else if (typeof value !== "string") return `${name} is not text`;
    else if (type === "time" && !isTime(value)) return `${name} is not a time`;
  }
  return undefined;
}

/** Whether a text is a time as Cairn writes it: ISO 8601 in UTC with milliseconds. */
export function isTime(text: string): boolean {
  const at = Date.parse(text);
  return !Number.isNaN(at) && new Date(at).toISOString() === text;
}

/** The damage of a row, with an id that can be shown and sent whatever the column holds. */
export function damagedRow(collection: RecordCollection, row: RawRow, reason: string): DamagedRecord {
  const { id } = row;
  const text = typeof id === "string" ? id : id instanceof Uint8Array ? Buffer.from(id).toString("utf8") : String(id);
  return { collection, id: text.toWellFormed().replaceAll("\0", "\ufffd").slice(0, 200), reason };
}

function parseContext(text: unknown): Readonly<Record<string, string>> | undefined {
  if (typeof text !== "string") return undefined;
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === "object" && parsed !== null && !Array.isArray(parsed) ? (parsed as Record<string, string>) : undefined;
  } catch {
    return undefined;
  }
}
