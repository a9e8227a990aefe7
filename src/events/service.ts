import { SHARED_PROJECT_ID } from "../model/ids.ts";
import type { RunStore } from "../ports/run-store.ts";
import type { Storage } from "../ports/storage.ts";
import { decodeCursor, logName, RUNS_LOG } from "./cursor.ts";
import { type FollowedLog, followedLog, type LogSource, NOTHING } from "./followed-log.ts";
import { createFollower, type Follower, type StreamMessage } from "./follower.ts";

export interface FollowRequest {
  /** The projects to follow; `all` also follows runs without a project and the shared knowledge. */
  readonly projects: "all" | readonly string[];
  /** The id of the last message that the client got. */
  readonly lastEventId?: string | undefined;
}

/** An open stream. Close it, or its logs are polled on. */
export interface EventStream {
  /** Returns the next messages, at most 100; none when the time is up or the signal aborts. */
  next(waitMs: number, signal: AbortSignal): Promise<readonly StreamMessage[]>;
  close(): void;
}

/** Changes of records, runs and code, of any process, in the order of their database. */
export interface Events {
  follow(request: FollowRequest): Promise<EventStream>;
  close(): void;
}

export interface EventsDeps {
  readonly storage: Storage;
  readonly runs: Pick<RunStore, "events">;
  readonly now: () => string;
  /** Milliseconds between two looks. */
  readonly periodMs?: number;
}

const PERIOD_MS = 500;
/** Milliseconds between two lists of all projects. */
const LIST_MS = 2_000;
/** Polling takes at most a fifth of the time, whatever the number of logs. */
const PAUSE_FACTOR = 4;

interface Subscription {
  readonly follower: Follower;
  readonly all: boolean;
  readonly names: Set<string>;
}

export function events({ storage, runs, now, periodMs = PERIOD_MS }: EventsDeps): Events {
  const logs = new Map<string, FollowedLog>();
  const subscriptions = new Set<Subscription>();
  let timer: NodeJS.Timeout | undefined;
  let listAt = 0;

  const projectSource = (project: string): LogSource => ({
    name: logName(project),
    project,
    find: async () => (await storage.find(project))?.events,
    jobs: async () => (await (await storage.find(project))?.code.reports()) ?? [],
  });
  const runsSource: LogSource = { name: RUNS_LOG, find: async () => runs.events };

  async function attach({ follower, names }: Subscription, source: LogSource, isNew = false): Promise<void> {
    let log = logs.get(source.name);
    if (!log) {
      log = followedLog(source);
      logs.set(source.name, log);
    }
    names.add(source.name);
    await follower.attach(log, isNew).catch(() => {}); // a damaged database is looked at again, and affects no other
  }

  const allSources = async () => [...(await storage.projects()), SHARED_PROJECT_ID].map(projectSource);

  /** Adds projects that were created since the last list to the streams of all projects. */
  async function findNewProjects(): Promise<void> {
    const following = [...subscriptions].filter(({ all }) => all);
    if (following.length === 0 || Date.now() < listAt) return;
    const started = Date.now();
    const sources = await allSources();
    listAt = Date.now() + Math.max(LIST_MS, 20 * (Date.now() - started));
    for (const source of sources)
      for (const one of following.filter(({ names }) => !names.has(source.name))) {
        await attach(one, source, true);
        one.follower.reportCode(source.project); // what the project has so far is new to the stream
      }
  }

  async function look(): Promise<void> {
    await findNewProjects().catch(() => {});
    for (const [name, log] of logs) {
      const followers = [...subscriptions].filter(({ names }) => names.has(name));
      if (followers.length === 0) {
        logs.delete(name);
        continue;
      }
      const { hasEvents, hasCode, jobs } = await log.look().catch(() => NOTHING); // tried again by the next look
      for (const { follower } of followers) {
        if (hasEvents) follower.wake();
        if (hasCode) follower.reportCode(log.source.project, jobs);
      }
    }
  }

  /** Looks until nobody follows any more. */
  function schedule(delayMs: number): void {
    if (timer || subscriptions.size === 0) return;
    timer = setTimeout(async () => {
      const started = Date.now();
      await look();
      timer = undefined;
      schedule(Math.max(periodMs, PAUSE_FACTOR * (Date.now() - started)));
    }, delayMs).unref();
  }

  return {
    async follow({ projects, lastEventId }) {
      const resumed = lastEventId === undefined ? undefined : decodeCursor(lastEventId);
      const isAll = projects === "all";
      const mayFollow = (project: string | undefined) => isAll || (project !== undefined && projects.includes(project));
      const follower = createFollower({ resumed, isLost: lastEventId !== undefined && !resumed, startedAt: now(), mayFollow });
      const subscription: Subscription = { follower, all: isAll, names: new Set() };
      subscriptions.add(subscription);
      const close = () => void subscriptions.delete(subscription);
      try {
        for (const source of [runsSource, ...(isAll ? await allSources() : projects.map(projectSource))])
          await attach(subscription, source);
      } catch (error) {
        close();
        throw error;
      }
      if (lastEventId !== undefined) follower.reportCode(undefined); // the index may have changed meanwhile
      schedule(periodMs);
      return { next: follower.next, close };
    },
    close: () => subscriptions.clear(),
  };
}
