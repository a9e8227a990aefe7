import type { StoreEvent } from "../../api/events.ts";

/** Whether an event may have changed a run that still exists. After a burst an event names no run. */
export function isChangeOf(runId: string, { kind, action, id }: StoreEvent): boolean {
  return kind === "run" && action !== "deleted" && (id === undefined || id === runId);
}

export function isDeletionOf(runId: string, { kind, action, id }: StoreEvent): boolean {
  return kind === "run" && action === "deleted" && id === runId;
}
