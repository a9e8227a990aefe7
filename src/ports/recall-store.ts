import type { DamagedRecord } from "../model/damaged-record.ts";
import type { IdempotencyKey } from "../model/idempotency.ts";
import type { DeletableRecords } from "./deletable-records.ts";
import type { EmbeddingStore } from "./embedding-store.ts";

export interface Ranked {
  readonly id: string;
  readonly score: number;
  /** Grows by one with each new record, where the store numbers its records: neighbours in time have neighbouring keys. */
  readonly key?: number | undefined;
}

export interface KeywordRanked extends Ranked {
  /** The share of the query's terms that the record contains, 0…1; present for the best record at least. */
  readonly matched?: number | undefined;
}

export interface CandidateQuery<Filter> {
  readonly filter: Filter;
  /** The maximum length of each ranking. */
  readonly limit: number;
  /** The maximum length of the semantic ranking, where it is shorter than `limit`. */
  readonly semanticLimit?: number | undefined;
  /** The text of the user, never query syntax. Absent: no keyword ranking. */
  readonly text?: string | undefined;
  /** The embedded query. Absent: no semantic ranking. */
  readonly semantic?: { readonly versionId: number; readonly vector: Float32Array } | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface Candidates {
  /** The full-text ranking (BM25 or its closest equivalent), best first. Scores are positive and comparable within one result only. */
  readonly keyword: readonly KeywordRanked[];
  /** The ranking by exact cosine, best first. A record in several pieces has the cosine of its best one. */
  readonly semantic: readonly Ranked[];
  /** The cosines of the records in `keyword`, where the store computed them while the semantic ranking was running. */
  readonly similarities?: ReadonlyMap<string, number> | undefined;
  /** True if records were replaced during the ranking, so it may lack some. The caller ranks again. */
  readonly incomplete?: boolean | undefined;
  /** The reason why the result is complete but was computed in a degraded way. */
  readonly degraded?: string | undefined;
}

/** Finds records semantically and by keyword. Filters apply before ranking, so a matching record is always reachable. */
export interface RecallStore<Filter> {
  readonly embeddings: EmbeddingStore;
  candidates(query: CandidateQuery<Filter>): Promise<Candidates>;
  /** Returns the ids of the records that pass the filter, or `many` when there are more than the limit. */
  matching?(filter: Filter, limit: number): Promise<"all" | "many" | readonly string[]>;
  /** Returns the cosine of each record that has a vector in this version, that of its best piece. */
  similarities(versionId: number, vector: Float32Array, ids: readonly string[]): Promise<ReadonlyMap<string, number>>;
}

export interface ReadRecords<RecordType> {
  /** In the order requested, without missing and damaged records. */
  readonly records: readonly RecordType[];
  /** The records that exist and cannot be read. */
  readonly damaged: readonly DamagedRecord[];
}

/** A recall store whose records carry checksums, and whose deletions can be undone. */
export interface RecordStore<RecordType, Filter> extends RecallStore<Filter>, DeletableRecords<RecordType> {
  getMany(ids: readonly string[]): Promise<ReadRecords<RecordType>>;
  /** Returns the id of the record that the first call with this key stored or reported on. */
  recordOfKey(key: IdempotencyKey): Promise<string | undefined>;
}
