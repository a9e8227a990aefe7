import type { LoggedEvent } from "../model/event.ts";
import type { IndexReport } from "../model/index-report.ts";
import type { EventLog, EventPage, ProjectEvents } from "../ports/event-log.ts";

/** Newest events of a log that stay in memory for all of its followers. Those who are further behind read the database. */
const RECENT_MAX = 1_000;
const PAGE = 500;
/** Looks without a read after which the log is read in any case: some file systems update times late. */
const UNREAD_LOOKS_MAX = 60;

export interface LogSource {
  readonly name: string;
  /** Absent for runs. */
  readonly project?: string | undefined;
  /** Returns the log; `undefined` while the database does not exist. */
  readonly find: () => Promise<EventLog | ProjectEvents | undefined>;
  /** Returns the index jobs of the project. */
  readonly jobs?: () => Promise<readonly IndexReport[]>;
}

/** What one look found. */
export interface Look {
  readonly hasEvents: boolean;
  readonly hasCode: boolean;
  /** Index jobs whose status changed. */
  readonly jobs: readonly IndexReport[];
}

/** One log that this process polls while somebody follows it. */
export interface FollowedLog {
  readonly source: LogSource;
  /** Grows with each change that followers must look at. */
  version(): number;
  /** Returns the position of the newest event that was polled; `undefined` while the database does not exist. */
  end(): Promise<string | undefined>;
  /** Reads the events after a position, from memory where possible. */
  readAfter(position: string, limit: number): Promise<EventPage>;
  /** Returns a position by the log's own clock and rules. */
  positionAt(time: string): Promise<string | undefined>;
  head(): Promise<string | undefined>;
  /** Looks for changes once. Returns what is new. */
  look(): Promise<Look>;
}

export function followedLog(source: LogSource): FollowedLog {
  let log: EventLog | ProjectEvents | undefined;
  let recent: LoggedEvent[] = [];
  /** The positions before the first and after the last of the recent events. */
  let base: string | undefined;
  let end: string | undefined;
  let version = 0;
  let mark: string | undefined;
  let codeMark: string | undefined;
  const statuses = new Map<string, string>();
  const followedSince = new Date().toISOString();
  let unread = 0;
  let isPending = false;
  let starting: Promise<void> | undefined;

  /** Starts at the head: earlier events are for followers with a position of their own. */
  async function start(): Promise<void> {
    log = await source.find();
    if (!log) return;
    mark = await log.changeMark();
    if ("codeMark" in log) codeMark = await log.codeMark();
    [recent, end] = [[], await log.head()];
    base = end;
  }

  function ready(): Promise<void> {
    starting ??= start().catch((error) => {
      starting = undefined;
      throw error;
    });
    return starting;
  }

  /** Starts at the beginning of a log that did not exist when following began. */
  async function adopt(found: EventLog | ProjectEvents): Promise<void> {
    log = found;
    [recent, base] = [[], await found.positionAt(BEGINNING)];
    end = base;
    version++;
  }

  /** Returns the jobs whose status differs from the last look; a job that ended before anybody followed is not new. */
  async function changedJobs(): Promise<readonly IndexReport[]> {
    const jobs = (await source.jobs?.()) ?? [];
    const changed = jobs.filter(({ jobId, status, updatedAt }) => statuses.get(jobId) !== status && updatedAt >= followedSince);
    statuses.clear();
    for (const { jobId, status } of jobs) statuses.set(jobId, status);
    return changed;
  }

  async function poll(from: EventLog): Promise<boolean> {
    let hasEvents = false;
    for (;;) {
      const page = await from.readAfter(end!, PAGE);
      isPending = page.isPending;
      if (page.isExpired) {
        [recent, end] = [[], await from.head()];
        base = end;
        version++;
        return true;
      }
      if (page.events.length === 0) return hasEvents;
      hasEvents = true;
      version++;
      recent.push(...page.events);
      end = recent.at(-1)!.position;
      if (recent.length > RECENT_MAX) {
        const dropped = recent.splice(0, recent.length - RECENT_MAX);
        base = dropped.at(-1)!.position;
      }
      if (page.events.length < PAGE) return hasEvents;
    }
  }

  return {
    source,
    version: () => version,
    async end() {
      await ready();
      return end;
    },
    async readAfter(position, limit) {
      if (position === end) return { events: [], isExpired: false, isPending };
      const index = position === base ? 0 : recent.findIndex((event) => event.position === position) + 1;
      if (index > 0 || position === base) return { events: recent.slice(index, index + limit), isExpired: false, isPending };
      return (await log?.readAfter(position, limit)) ?? { events: [], isExpired: false, isPending };
    },
    positionAt: async (time) => log?.positionAt(time),
    head: async () => log?.head(),
    async look() {
      await ready();
      if (!log) {
        const found = await source.find();
        if (!found) return NOTHING;
        await adopt(found);
      }
      const marked = await log!.changeMark();
      const codeMarked = "codeMark" in log! ? await log.codeMark() : undefined;
      const hasCode = codeMark !== undefined && codeMarked !== codeMark;
      const jobs = hasCode ? await changedJobs() : [];
      codeMark = codeMarked;
      const isUnchanged = marked !== undefined && marked === mark && !isPending && ++unread < UNREAD_LOOKS_MAX;
      if (isUnchanged) return { hasEvents: false, hasCode, jobs };
      log = await source.find(); // it may have been migrated or quarantined
      if (!log) return NOTHING;
      [mark, unread] = [marked, 0];
      return { hasEvents: await poll(log), hasCode, jobs };
    },
  };
}

export const NOTHING: Look = { hasEvents: false, hasCode: false, jobs: [] };
const BEGINNING = "0001-01-01T00:00:00.000Z";
