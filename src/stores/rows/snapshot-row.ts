import type { SnapshotInfo, SnapshotMode } from "../../model/system.ts";

/** A row of `snapshots`. SQLite has no booleans and stores 0 or 1. */
export interface SnapshotRow {
  id: string;
  created_at: string;
  mode: SnapshotMode;
  complete: boolean | number;
  components: number;
  messages: number;
  state_keys: number;
  bytes: number;
  checksum: string | null;
}

export function toSnapshot(row: SnapshotRow): SnapshotInfo {
  return {
    id: row.id,
    createdAt: row.created_at,
    mode: row.mode,
    complete: Boolean(row.complete),
    checksum: row.checksum,
    components: row.components,
    messages: row.messages,
    stateKeys: row.state_keys,
    bytes: row.bytes,
  };
}
