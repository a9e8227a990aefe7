import type { DamagedRecord } from "../model/damaged-record.ts";
import type { EmbeddingStore } from "./embedding-store.ts";

export interface Ranked {
  readonly id: string;
  readonly score: number;
}

export interface RankedByWords extends Ranked {
  /** The share of the query's words that the record has, 0…1; known of the best one at least. */
  readonly matched?: number | undefined;
}

export interface CandidateQuery<Filter> {
  readonly filter: Filter;
  /** How many of each ranking. */
  readonly limit: number;
  /** How many of the one by meaning, where fewer will do. */
  readonly denseLimit?: number | undefined;
  /** What the person typed; any text, never query syntax. Absent: no ranking by words. */
  readonly words?: string | undefined;
  /** Absent: no ranking by meaning. */
  readonly dense?: { readonly versionId: number; readonly vector: Float32Array } | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface Candidates {
  /** By words (BM25 or its nearest relative), best first; scores are positive and comparable within one answer only. */
  readonly lexical: readonly RankedByWords[];
  /** By cosine, best first, exact scores. */
  readonly dense: readonly Ranked[];
  /** The cosines of those that the words found, where they were to be had while the ranking by meaning was still being made. */
  readonly similarities?: ReadonlyMap<string, number> | undefined;
  /** What was not as it should be, though the answer is whole. */
  readonly degraded?: string | undefined;
}

/** Records that can be found by meaning and by words. Filters come first: one never makes a matching record unreachable. */
export interface RecallStore<Filter> {
  readonly embeddings: EmbeddingStore;
  candidates(query: CandidateQuery<Filter>): Promise<Candidates>;
  /** The ids of the records that a filter lets through; `many` when there are more than the limit. */
  matching?(filter: Filter, limit: number): Promise<"all" | "many" | readonly string[]>;
  /** The cosine of each record that has a vector in this version. */
  similarities(versionId: number, vector: Float32Array, ids: readonly string[]): Promise<ReadonlyMap<string, number>>;
}

export interface ReadRecords<RecordType> {
  /** In the order asked, without those that are gone or damaged. */
  readonly records: readonly RecordType[];
  /** Those that are there and cannot be read. */
  readonly damaged: readonly DamagedRecord[];
}

/** A recall store of records with checksums. */
export interface RecordStore<RecordType, Filter> extends RecallStore<Filter> {
  getMany(ids: readonly string[]): Promise<ReadRecords<RecordType>>;
}
