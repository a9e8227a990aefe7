import { CairnError } from "./errors.ts";

/** The collections whose records carry a checksum. */
export type RecordCollection = "checkpoints" | "knowledge";

/** A stored record that cannot be trusted: it is skipped by every read and set aside by `cairn doctor --repair`. */
export interface DamagedRecord {
  readonly collection: RecordCollection;
  /** As far as it can be read. */
  readonly id: string;
  readonly reason: string;
}

/** At most this many damaged records are named in one answer. */
export const DAMAGED_SHOWN = 100;

export function damagedRecordError({ collection, id, reason }: DamagedRecord): CairnError {
  return new CairnError(
    "conflict",
    `${collection === "checkpoints" ? "The checkpoint" : "The knowledge"} ${JSON.stringify(id)} is damaged: ${reason}. Restore a backup, or run "cairn doctor --repair" to set it aside with its raw content.`,
    { details: { kind: "damaged_record", collection, id, reason } },
  );
}

/** What a check of a project's records found. */
export interface RecordReport {
  readonly damaged: readonly DamagedRecord[];
  /** Derived data that does not match the records: full-text rows, indexes, `embedding_records`. */
  readonly stale: readonly string[];
  /** How many records an earlier repair set aside. */
  readonly quarantined: number;
}

/** What a repair did. */
export interface RecordRepair {
  /** Records that were moved to the table `quarantined_records`. */
  readonly quarantined: readonly DamagedRecord[];
  /** Derived data that was built again from the records. */
  readonly rebuilt: readonly string[];
}
