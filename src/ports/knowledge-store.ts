import type { DamagedRecord } from "../model/damaged-record.ts";
import type { Knowledge, KnowledgeKind } from "../model/knowledge.ts";
import type { PutOptions } from "./checkpoint-store.ts";
import type { VersionedVector } from "./embedding-store.ts";
import type { RecordStore } from "./recall-store.ts";

/** All that are given must match exactly. */
export interface KnowledgeFilter {
  readonly kind?: KnowledgeKind | undefined;
  readonly category?: string | undefined;
  readonly subcategory?: string | undefined;
  readonly source?: string | undefined;
}

export interface KnowledgeQuery {
  readonly filter?: KnowledgeFilter | undefined;
  readonly limit: number;
  /** Only records that come after this one: newest first, ties by id. */
  readonly after?: { readonly at: string; readonly id: string } | undefined;
}

export interface KnowledgePage {
  readonly records: readonly Knowledge[];
  /** Records within the page that cannot be read; they count in `total`, and further records take their places. */
  readonly damaged: readonly DamagedRecord[];
  /** How many match, exact, and of the same moment as the page. */
  readonly total: number;
}

/** What an import compares with. */
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

/** Everything that one import changes. */
export interface KnowledgeBatch {
  /** Records whose id must not be there yet. */
  readonly add: readonly KnowledgeWrite[];
  /** Records that must still be at the revision before theirs. */
  readonly replace: readonly KnowledgeWrite[];
  /** Records that must still be at this revision. */
  readonly remove: readonly { readonly id: string; readonly revision: number }[];
  /** As in `PutOptions`. */
  readonly savedAt?: string | undefined;
}

/** The knowledge of one project, or that of all of them. Every verb is atomic, and done means durable. */
export interface KnowledgeStore extends RecordStore<Knowledge, KnowledgeFilter> {
  /** Stores a new record; false if its id is taken, and then nothing changes. */
  put(record: Knowledge, vectors?: readonly VersionedVector[], options?: PutOptions): Promise<boolean>;
  /** Replaces a record's content if it is still at the revision before; its counts stay as they are stored. Without vectors, those there stay. */
  replace(record: Knowledge, vectors?: readonly VersionedVector[]): Promise<boolean>;
  /** Raises `conflict` if the record is damaged. */
  get(id: string): Promise<Knowledge | undefined>;
  list(query: KnowledgeQuery): Promise<KnowledgePage>;
  delete(id: string): Promise<boolean>;
  /** Counts one use and, if it helped, one success; no count is ever lost. Gives the record as it is then. Raises `conflict` if it is damaged. */
  feedback(id: string, success: boolean): Promise<Knowledge | undefined>;
  /** Remediations whose error has this signature, oldest first. */
  withSignature(signature: string, filter: KnowledgeFilter, limit: number): Promise<readonly string[]>;
  /** All records, in the order of their ids. */
  marks(): Promise<readonly KnowledgeMark[]>;
  /** Makes all of these changes or, if any record is not as expected, none; returns which. */
  apply(batch: KnowledgeBatch): Promise<"applied" | "changed meanwhile">;
}
