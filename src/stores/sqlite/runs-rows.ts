import type { Run, RunCheckpoint, RunCheckpointInfo, RunStatus } from "../../model/run.ts";
import { assertKnownVersion } from "../../model/run-rules.ts";
import { unpackState } from "../../text/run-payload.ts";

/** The columns of a checkpoint without its state. */
export const INFO = "run_id, node_id, sequence, timestamp, version, next_node, previous_node, attempt, branch, step, kind, note, size";

export interface InfoRow {
  run_id: string;
  node_id: string;
  sequence: number;
  timestamp: string;
  version: number;
  next_node: string | null;
  previous_node: string | null;
  attempt: number;
  branch: string;
  step: number;
  kind: RunCheckpointInfo["kind"];
  note: string | null;
  size: number;
}

export interface RunRow {
  run_id: string;
  graph: string;
  fingerprint: string;
  project: string | null;
  status: RunStatus;
  note: string | null;
  parent_run_id: string | null;
  parent_sequence: number | null;
  last_sequence: number;
  fence: number;
  lease_owner: string | null;
  lease_until: string | null;
  created_at: string;
  updated_at: string;
}

export function toInfo(row: InfoRow): RunCheckpointInfo {
  assertKnownVersion(row.version, row.run_id);
  return {
    version: row.version,
    runId: row.run_id,
    nodeId: row.node_id,
    sequence: row.sequence,
    timestamp: row.timestamp,
    size: row.size,
    nextNode: row.next_node,
    previousNode: row.previous_node,
    attempt: row.attempt,
    branch: row.branch,
    step: row.step,
    kind: row.kind,
    note: row.note,
  };
}

/** A whole checkpoint in two columns: handing over one value costs as much as a text of a hundred characters, so many small ones go as one. */
export const WHOLE = `json_array(${INFO}, encoding) AS envelope, data`;

export interface WholeRow {
  envelope: string;
  data: Uint8Array;
}

export function fromWhole({ envelope, data }: WholeRow): RunCheckpoint | Promise<RunCheckpoint> {
  const [runId, nodeId, sequence, timestamp, version, nextNode, previousNode, attempt, branch, step, kind, note, size, encoding] =
    JSON.parse(envelope);
  assertKnownVersion(version, runId);
  // SQLite hands over bytes of our own already, so they need not be copied once more.
  if (encoding === "raw" && data.byteLength === size)
    return { version, runId, nodeId, sequence, timestamp, size, nextNode, previousNode, attempt, branch, step, kind, note, state: data };
  const info = { version, runId, nodeId, sequence, timestamp, size, nextNode, previousNode, attempt, branch, step, kind, note };
  const state = unpackState({ data, encoding, size });
  return state instanceof Promise ? state.then((state) => ({ ...info, state })) : { ...info, state };
}

export function toRun(row: RunRow): Run {
  return {
    runId: row.run_id,
    graph: row.graph,
    fingerprint: row.fingerprint,
    project: row.project,
    status: row.status,
    note: row.note,
    parent: row.parent_run_id === null ? null : { runId: row.parent_run_id, sequence: row.parent_sequence! },
    lastSequence: row.last_sequence,
    fence: row.fence,
    leaseOwner: row.lease_owner,
    leaseUntil: row.lease_until,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
