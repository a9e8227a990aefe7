import type { LoggedEvent, StoreEvent } from "../model/event.ts";
import type { IndexReport } from "../model/index-report.ts";
import { CURSOR_LOGS_MAX, encodeCursor, type StreamCursor } from "./cursor.ts";
import type { FollowedLog } from "./followed-log.ts";

/** A message of the stream, with the id to resume after. */
export type StreamMessage =
  | { readonly type: "change"; readonly id: string; readonly event: StoreEvent }
  /** Events of this project, or of any, may be missing: read its state again. */
  | { readonly type: "reset"; readonly id: string; readonly project?: string | undefined };

/** Messages that one call returns at most: the queue of a client. */
const MESSAGES_MAX = 100;

export interface FollowerOptions {
  readonly resumed: StreamCursor | undefined;
  /** Whether the client has an id that this server cannot read. */
  readonly isLost: boolean;
  readonly startedAt: string;
  /** Decides about events of runs, whose project is part of the event. */
  readonly mayFollow: (project: string | undefined) => boolean;
}

/** The view of one client: a position in each log, and nothing else that grows. */
export interface Follower {
  /** Starts to follow a log: after the client's position, or else its end; with `isNew`, from the start of the stream. */
  attach(log: FollowedLog, isNew: boolean): Promise<void>;
  /** Returns the next messages; empty when the time is up or the signal aborts. */
  next(waitMs: number, signal: AbortSignal): Promise<readonly StreamMessage[]>;
  wake(): void;
  /** Reports that the code index of a project, or of any, changed, and the index jobs whose status did. */
  reportCode(project: string | undefined, jobs?: readonly IndexReport[]): void;
}

interface Attached {
  readonly log: FollowedLog;
  position: string | undefined;
  seen: number;
}

export function createFollower({ resumed, isLost, startedAt, mayFollow }: FollowerOptions): Follower {
  const attached = new Map<string, Attached>();
  const positions = new Map(resumed?.positions);
  const code = new Set<string | undefined>();
  /** By job: a client that is behind gets the last status only. */
  const jobs = new Map<string, StoreEvent>();
  let start = resumed?.startedAt ?? startedAt;
  let waiting = () => {};
  let mustReset = isLost;

  const id = () => encodeCursor({ startedAt: start, positions });

  function toMessages({ source }: FollowedLog, events: readonly LoggedEvent[]): StreamMessage[] {
    return events.flatMap(({ position, ...event }) => {
      positions.set(source.name, position);
      const project = source.project ?? event.project;
      if (!mayFollow(project)) return [];
      return [{ type: "change" as const, id: id(), event: { ...event, ...(project !== undefined && { project }) } }];
    });
  }

  /** Reads one log. A database that fails keeps its position, and is read again after its next change. */
  async function read(one: Attached, limit: number): Promise<StreamMessage[]> {
    const version = one.log.version();
    return readLog(one, version, limit).catch(() => {
      one.seen = version;
      return [];
    });
  }

  async function readLog(one: Attached, version: number, limit: number): Promise<StreamMessage[]> {
    const { log } = one;
    one.position ??= await log.positionAt(start);
    if (one.position === undefined) {
      one.seen = version; // nothing was ever stored
      return [];
    }
    const { events, isExpired } = await log.readAfter(one.position, limit);
    if (isExpired) {
      one.position = (await log.head())!;
      positions.set(log.source.name, one.position);
      return [{ type: "reset", id: id(), project: log.source.project }];
    }
    one.position = events.at(-1)?.position ?? one.position;
    if (events.length < limit) one.seen = version;
    return toMessages(log, events);
  }

  /** A cursor that grew too long is replaced by the current time. */
  function restart(): StreamMessage {
    for (const one of attached.values()) one.seen = one.log.version();
    positions.clear();
    start = new Date().toISOString();
    return { type: "reset", id: id() };
  }

  async function collect(): Promise<StreamMessage[]> {
    const messages: StreamMessage[] = mustReset ? [{ type: "reset", id: id() }] : [];
    mustReset = false;
    for (const one of attached.values()) {
      while (one.seen !== one.log.version() && messages.length < MESSAGES_MAX)
        messages.push(...(await read(one, MESSAGES_MAX - messages.length)));
      if (positions.size > CURSOR_LOGS_MAX) return [...messages, restart()];
    }
    for (const project of code) {
      const event: StoreEvent = {
        kind: "code",
        action: "indexed",
        id: "",
        at: new Date().toISOString(),
        ...(project !== undefined && { project }),
      };
      messages.push({ type: "change", id: id(), event });
    }
    code.clear();
    for (const event of jobs.values()) messages.push({ type: "change", id: id(), event });
    jobs.clear();
    return messages;
  }

  return {
    async attach(log, isNew) {
      if (attached.has(log.source.name)) return;
      const known = positions.get(log.source.name);
      const one: Attached = { log, position: known, seen: -1 };
      attached.set(log.source.name, one);
      const end = await log.end();
      if (known === undefined && resumed === undefined && !isNew && end !== undefined) [one.position, one.seen] = [end, log.version()];
    },
    async next(waitMs, signal) {
      let isLate = false;
      const onAbort = () => waiting();
      const timer = setTimeout(() => {
        isLate = true;
        waiting();
      }, waitMs);
      signal.addEventListener("abort", onAbort);
      try {
        for (;;) {
          const woken = new Promise<void>((resolve) => {
            waiting = resolve;
          });
          const messages = await collect();
          if (messages.length > 0 || isLate || signal.aborted) return messages;
          await woken;
        }
      } finally {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
      }
    },
    wake: () => waiting(),
    reportCode(project, changed = []) {
      if (!mayFollow(project) && project !== undefined) return;
      code.add(project);
      for (const { jobId, status, updatedAt } of changed)
        jobs.set(jobId, { kind: "code", action: "job", id: jobId, at: updatedAt, status, ...(project !== undefined && { project }) });
      waiting();
    },
  };
}
