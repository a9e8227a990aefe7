import type { NewRunCheckpoint, RunCheckpoint, RunCheckpointInfo, StoredState } from "../../../model/run.ts";
import { assertKnownVersion, checkpointInfo } from "../../../model/run-rules.ts";
import { type Payload, type PayloadEncoding, unpackState } from "../../rows/run-payload.ts";
import type { SqliteTx } from "../driver/driver.ts";

/** A row of a checkpoint, without its state. */
export interface InfoRow {
  node_id: string;
  envelope: string;
}

/** Encodes all fields of a checkpoint except its keys and its state as one JSON text: see schema.ts. */
export function toEnvelope(info: RunCheckpointInfo, encoding: PayloadEncoding): string {
  const { sequence, timestamp, version, nextNode, previousNode, attempt, branch, step, kind, note, size } = info;
  return JSON.stringify([sequence, timestamp, version, nextNode, previousNode, attempt, branch, step, kind, note, size, encoding]);
}

export function toInfo(runId: string, row: InfoRow): RunCheckpointInfo {
  const [sequence, timestamp, version, nextNode, previousNode, attempt, branch, step, kind, note, size] = JSON.parse(row.envelope);
  assertKnownVersion(version, runId);
  const nodeId = row.node_id;
  return { version, runId, nodeId, sequence, timestamp, size, nextNode, previousNode, attempt, branch, step, kind, note };
}

export function toCheckpoint(runId: string, nodeId: string, envelope: string, data: StoredState): RunCheckpoint | Promise<RunCheckpoint> {
  const [sequence, timestamp, version, nextNode, previousNode, attempt, branch, step, kind, note, size, encoding] = JSON.parse(envelope);
  assertKnownVersion(version, runId);
  const unpacked = unpackState({ data, encoding, size });
  // Almost every state is small and decoded synchronously: no promise is needed.
  const state = unpacked instanceof Promise ? "" : unpacked;
  const whole = { version, runId, nodeId, sequence, timestamp, size, nextNode, previousNode, attempt, branch, step, kind, note, state };
  return unpacked instanceof Promise ? unpacked.then((state) => ({ ...whole, state })) : whole;
}

export function insertCheckpoint(
  tx: SqliteTx,
  checkpoint: NewRunCheckpoint,
  payload: Payload,
  sequence: number,
  at: string,
): RunCheckpointInfo {
  const info = checkpointInfo(checkpoint, sequence, at, payload.size);
  tx.run(
    "INSERT INTO checkpoints (run_id, node_id, sequence, timestamp, branch, envelope, data) VALUES (?, ?, ?, ?, ?, ?, ?)",
    info.runId,
    info.nodeId,
    sequence,
    at,
    info.branch,
    toEnvelope(info, payload.encoding),
    payload.data,
  );
  return info;
}
