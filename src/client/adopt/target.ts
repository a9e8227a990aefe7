import type { CheckpointRecord } from "./checkpoint-record.ts";
import type { NoteRecord } from "./note-records.ts";

/** A stored checkpoint, as far as adopting needs it. */
export interface StoredCheckpoint {
  readonly id: string;
  readonly context: Readonly<Record<string, string>>;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface StoredNote {
  readonly id: string;
  readonly source: string;
}

export interface ImportedCheckpoints {
  readonly imported: number;
  readonly problems: readonly { readonly index: number; readonly problem: string }[];
}

/** A project, or `undefined` for the knowledge that all projects share. */
export type Place = string | undefined;

/** Where adopted records go: the storage of this machine, or a server. Each verb may be repeated. */
export interface AdoptTarget {
  /** Stores the records whose id is new. Returns how many these were, and the problems of rejected records by their index. */
  importCheckpoints(project: string, records: readonly CheckpointRecord[]): Promise<ImportedCheckpoints>;
  getCheckpoint(project: string, id: string): Promise<StoredCheckpoint | undefined>;
  purgeCheckpoint(project: string, id: string): Promise<void>;
  /** Yields the checkpoints with a tag, page by page. */
  listCheckpoints(project: string, tag: string): AsyncIterable<StoredCheckpoint>;
  /** Adds and changes the records of a source, and deletes its others if `replaces`. */
  importNotes(place: Place, source: string, records: readonly NoteRecord[], replaces: boolean): Promise<{ added: number; changed: number }>;
  listNotes(place: Place): AsyncIterable<StoredNote>;
  /** Returns whether a place has an adopted record. */
  hasAdopted(place: Place): Promise<boolean>;
  purgeNote(place: Place, id: string): Promise<void>;
  /** Returns projects that have records, and how many more there are. */
  projects(): Promise<{ readonly paths: readonly string[]; readonly more: number }>;
}
