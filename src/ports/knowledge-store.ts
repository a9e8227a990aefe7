import type { DamagedRecord } from "../model/damaged-record.ts";
import type { IdempotencyKey } from "../model/idempotency.ts";
import type { Knowledge, KnowledgeKind } from "../model/knowledge.ts";
import type { PutOptions } from "./checkpoint-store.ts";
import type { VersionedVector } from "./embedding-store.ts";
import type { RecordStore } from "./recall-store.ts";

/** All given fields must match exactly. */
export interface KnowledgeFilter {
  readonly kind?: KnowledgeKind | undefined;
  readonly category?: string | undefined;
  readonly subcategory?: string | undefined;
  readonly source?: string | undefined;
}

export interface KnowledgeQuery {
  readonly filter?: KnowledgeFilter | undefined;
  readonly limit: number;
  /** Only records after this one: newest first, ties by id. */
  readonly after?: { readonly at: string; readonly id: string } | undefined;
}

export interface KnowledgePage {
  readonly records: readonly Knowledge[];
  /** Unreadable records within the page; they count in `total`, and further records fill the page. */
  readonly damaged: readonly DamagedRecord[];
  /** The exact number of matches, from the same snapshot as the page. */
  readonly total: number;
}

/** The fields of a record that an import compares. */
export interface KnowledgeMark {
  readonly id: string;
  readonly source: string;
  readonly contentHash: string;
  readonly revision: number;
}

export interface KnowledgeWrite {
  readonly record: Knowledge;
  /** Absent: the existing vectors stay, because the embedded text did not change. */
  readonly vectors?: readonly VersionedVector[] | undefined;
}

/** All changes of one import. */
export interface KnowledgeBatch {
  /** Records whose id must not exist yet. */
  readonly add: readonly KnowledgeWrite[];
  /** Records that must still be at the revision before theirs. */
  readonly replace: readonly KnowledgeWrite[];
  /** Records that must still be at this revision. They are erased. */
  readonly remove: readonly { readonly id: string; readonly revision: number }[];
  /** As in `PutOptions`. */
  readonly savedAt?: string | undefined;
}

/** What a caller reports about one use of a record. */
export interface FeedbackReport {
  readonly success: boolean;
  /** Whether the record no longer matches the facts. */
  readonly outdated: boolean;
}

/** The knowledge of one project, or the shared knowledge. Every method is atomic, and a resolved promise means durable. */
export interface KnowledgeStore extends RecordStore<Knowledge, KnowledgeFilter> {
  /** Stores a new record; returns false and changes nothing if its id exists or `once` was used. */
  put(record: Knowledge, vectors?: readonly VersionedVector[], options?: PutOptions): Promise<boolean>;
  /** Replaces a record's content if it is still at the previous revision; counts stay. Without `vectors`, the stored vectors stay. */
  replace(record: Knowledge, vectors?: readonly VersionedVector[], options?: Pick<PutOptions, "supersedes">): Promise<boolean>;
  /** Raises `conflict` if the record is damaged. */
  get(id: string): Promise<Knowledge | undefined>;
  list(query: KnowledgeQuery): Promise<KnowledgePage>;
  /**
   * Counts one use and what was reported, atomically. Returns the updated record. Raises `conflict` if it is damaged. If `once` was used,
   * it counts nothing and returns the record of the first call.
   */
  feedback(id: string, report: FeedbackReport, once?: IdempotencyKey): Promise<Knowledge | undefined>;
  /** Returns the ids of remediations whose error has this signature, oldest first. */
  withSignature(signature: string, filter: KnowledgeFilter, limit: number): Promise<readonly string[]>;
  /** Returns the marks of all records, by id. */
  marks(): Promise<readonly KnowledgeMark[]>;
  /** Applies all of these changes atomically, or none if any record is not as expected. */
  apply(batch: KnowledgeBatch): Promise<"applied" | "changed meanwhile">;
}
