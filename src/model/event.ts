/** The kinds of change that the event stream reports. */
export type EventKind = "checkpoint" | "knowledge" | "run" | "code";

/** A change in a store: names and numbers only, never the text of a record. */
export interface StoreEvent {
  readonly kind: EventKind;
  /** `saved`, `edited`, `deleted`, `restored`, `purged` or `feedback` of a record; `step`, `status` or `deleted` of a run; `indexed` or `job` of code. */
  readonly action: string;
  /** The record, run or index job; empty for `indexed`. */
  readonly id: string;
  readonly at: string;
  /** The project of a run. Events of records have the project of their database. */
  readonly project?: string | undefined;
  /** The status of a run or index job. */
  readonly status?: string | undefined;
  /** The newest sequence of a run. */
  readonly sequence?: number | undefined;
}

/** An event with its position in the log of its database. */
export interface LoggedEvent extends StoreEvent {
  readonly position: string;
}

/** Events that each database keeps. A trigger deletes older ones. */
export const EVENTS_KEPT = 10_000;
/** The trigger deletes the excess once per this number of events. */
export const EVENTS_TRIM = 64;
/** Days after which an hourly task deletes events. The newest `EVENTS_STAY` stay, so that a position shows whether events are missing. */
export const EVENT_DAYS = 7;
export const EVENTS_STAY = 1_000;
