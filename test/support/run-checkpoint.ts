import type { NewRunCheckpoint } from "../../src/model/run.ts";

/** Returns the checkpoint of a completed step, with the given fields changed. */
export function runCheckpoint(fields: Partial<NewRunCheckpoint> = {}): NewRunCheckpoint {
  return {
    runId: "r",
    nodeId: "n",
    state: "{}",
    nextNode: null,
    previousNode: null,
    attempt: 1,
    branch: "",
    step: 1,
    kind: "node",
    ...fields,
  };
}
