import type { EventKind, LoggedEvent } from "../../model/event.ts";

/** A row of `events` in both engines. */
export interface EventRow {
  readonly sequence: number;
  readonly at: string;
  readonly kind: EventKind;
  readonly action: string;
  readonly id: string;
  readonly project: string | null;
  readonly status: string | null;
  readonly run_sequence: number | null;
}

export function toEvent(row: Omit<EventRow, "sequence">, position: string): LoggedEvent {
  return {
    position,
    kind: row.kind,
    action: row.action,
    id: row.id,
    at: row.at,
    ...(row.project !== null && { project: row.project }),
    ...(row.status !== null && { status: row.status }),
    ...(row.run_sequence !== null && { sequence: row.run_sequence }),
  };
}
