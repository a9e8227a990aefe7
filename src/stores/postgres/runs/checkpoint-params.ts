import { CHECKPOINT_VERSION, type NewRunCheckpoint } from "../../../model/run.ts";
import { checkpointInfo } from "../../../model/run-rules.ts";
import { type Payload, payloadBytes } from "../../rows/run-payload.ts";
import type { PgValue } from "../driver/driver.ts";

/** Lists the parameters $1 to $13 of the statements that store a checkpoint. */
export function checkpointParams(checkpoint: NewRunCheckpoint, payload: Payload): PgValue[] {
  const info = checkpointInfo(checkpoint, 0, "", payload.size);
  return [
    info.runId,
    info.nodeId,
    CHECKPOINT_VERSION,
    info.nextNode,
    info.previousNode,
    info.attempt,
    info.branch,
    info.step,
    info.kind,
    info.note,
    info.size,
    payload.encoding,
    payloadBytes(payload.data),
  ];
}
