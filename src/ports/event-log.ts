import type { LoggedEvent } from "../model/event.ts";

export interface EventPage {
  /** In the order of the log. */
  readonly events: readonly LoggedEvent[];
  /** Events after the requested position may have been deleted, or the position is of another log. `events` is empty. */
  readonly isExpired: boolean;
  /** Further events exist whose order is not certain yet, because an older transaction is still open. Read again soon. */
  readonly isPending: boolean;
}

/**
 * The changes of one database, in an order that never changes: an event is readable only when no event can come before it any more.
 * Each change and its event are one transaction. The log is bounded by `EVENTS_KEPT` and `EVENT_DAYS`.
 */
export interface EventLog {
  /** Returns the position after which only future events come. */
  head(): Promise<string>;
  /** Returns the position before the first event at or after this time. */
  positionAt(time: string): Promise<string>;
  /** Returns up to `limit` events after a position. */
  readAfter(position: string, limit: number): Promise<EventPage>;
  /** Returns a text that is cheap to compute and differs after a change; `undefined` where reading is as cheap. */
  changeMark(): Promise<string | undefined>;
  /** Deletes events before this time, except the newest `EVENTS_STAY`, and returns how many. */
  prune(before: string): Promise<number>;
}

/** The events of a project. */
export interface ProjectEvents extends EventLog {
  /** Returns a text that differs after a commit to the code index, or a report of an index job. */
  codeMark(): Promise<string>;
}
