import type { CheckpointFilter } from "./checkpoint-store.ts";
import type { VectorSpace } from "./embedding-store.ts";

/** What is known of a project without a look at its records. */
export interface ProjectEntry {
  readonly projectPath: string;
  readonly checkpoints: number;
  readonly knowledge: number;
  readonly codeFiles: number;
  /** The last change of a checkpoint or knowledge record; absent without records. */
  readonly lastActivityAt?: string | undefined;
}

export interface Catalogue {
  /** In no particular order. */
  readonly projects: readonly ProjectEntry[];
  /** Projects that exist and could not be counted, with the reason. */
  readonly unread: readonly UnreadProject[];
}

export interface UnreadProject {
  readonly projectPath: string;
  readonly reason: string;
}

/** A search of checkpoints in many projects. */
export interface BoundQuery {
  readonly projectPaths: readonly string[];
  readonly filter: CheckpointFilter;
  /** The text of the user, never query syntax. Absent: nothing is matched by keyword. */
  readonly text?: string | undefined;
  readonly semantic?: { readonly space: VectorSpace; readonly vector: Float32Array } | undefined;
}

/** Limits what a search of one project can find, so that most projects need not be searched. */
export interface SearchBound {
  readonly projectPath: string;
  /** `createdOrder` of the newest checkpoint that passes the filter; absent if none does. */
  readonly newestAt?: string | undefined;
  /** Whether a checkpoint that passes the filter may have a term of the text. */
  readonly hasMatch: boolean;
  /** The current embedding version of the checkpoints. Absent: nothing was ever embedded. */
  readonly space?: VectorSpace | undefined;
  /** The highest cosine of a checkpoint that passes the filter. Absent without a vector in the space of the query. */
  readonly cosine?: number | undefined;
}
