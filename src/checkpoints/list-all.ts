import type { MarkRecords } from "../freshness/mark-records.ts";
import type { Checkpoint } from "../model/checkpoint.ts";
import { asCairnError } from "../model/errors.ts";
import { LIMITS } from "../model/limits.ts";
import { NO_TIME } from "../model/no-time.ts";
import { newestFirst } from "../model/record-order.ts";
import type { CheckpointFilter, CheckpointStore, DayCount } from "../ports/checkpoint-store.ts";
import type { Storage } from "../ports/storage.ts";
import { utcTimes } from "../recall/search.ts";
import { forEachParallel } from "../scheduling/for-each-parallel.ts";
import { decodeCursor, encodeCursor } from "../text/cursor.ts";

interface OfAllProjects extends CheckpointFilter {
  /** Decides which projects the caller may see. */
  readonly mayTouch: (projectPath: string) => boolean;
}

export interface ListAllCheckpoints extends OfAllProjects {
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

/** One page of the checkpoints of all projects. */
export interface AllCheckpoints {
  readonly checkpoints: readonly Checkpoint[];
  /** Matches in all projects. */
  readonly total: number;
  readonly nextCursor?: string | undefined;
  /** True if some projects could not be read; `degraded` has the reasons. */
  readonly partial: boolean;
  readonly degraded: readonly string[];
}

export interface AllDays {
  readonly days: readonly DayCount[];
  /** True if some projects could not be read; `degraded` has the reasons. */
  readonly partial: boolean;
  readonly degraded: readonly string[];
}

export interface CountAllDays extends OfAllProjects {
  readonly utcOffsetMinutes?: number | undefined;
  readonly limit?: number | undefined;
}

interface Deps {
  readonly storage: Storage;
  readonly markRecords: MarkRecords;
}

/** The next records of one project that were not taken yet. */
interface Source {
  readonly projectPath: string;
  readonly store: CheckpointStore;
  buffer: readonly Checkpoint[];
  hasMore: boolean;
}

/** Records that are read of a project at once. Most projects have few among the newest of all. */
const READ_AT_ONCE = 8;
const ORDER = "created_at";

/** Merges the checkpoints of all projects, newest first. Each project is read as far as the page needs. */
export async function listAllCheckpoints({ storage, markRecords }: Deps, input: ListAllCheckpoints): Promise<AllCheckpoints> {
  const { limit = 10, cursor, mayTouch, ...given } = input;
  const filter = utcTimes(given);
  const start = cursor === undefined ? undefined : decodeCursor(cursor, ORDER);
  let total = 0;
  const read = async (source: Source, after: { at: string; id: string } | undefined) => {
    const page = await source.store.list({ filter, limit: READ_AT_ONCE + 1, offset: 0, sortBy: ORDER, after });
    source.buffer = page.checkpoints.slice(0, READ_AT_ONCE);
    source.hasMore = page.checkpoints.length > READ_AT_ONCE;
    return page.total;
  };

  const sources: Source[] = [];
  const degraded = await visitProjects(storage, mayTouch, async (projectPath, store) => {
    const source: Source = { projectPath, store, buffer: [], hasMore: false };
    const matches = await read(source, start);
    total += matches; // after the wait: other projects are read at the same time
    sources.push(source);
  });

  const taken: Checkpoint[] = [];
  for (let newest = newestSource(sources); newest && taken.length < limit; newest = newestSource(sources)) {
    const [checkpoint, ...rest] = newest.buffer;
    taken.push(checkpoint!);
    newest.buffer = rest;
    if (rest.length === 0 && newest.hasMore) await read(newest, placeOf(checkpoint!));
  }
  const last = taken.at(-1);
  const hasNext = last !== undefined && newestSource(sources) !== undefined;
  return {
    checkpoints: await markAll(markRecords, taken),
    total,
    partial: degraded.length > 0,
    degraded,
    nextCursor: hasNext ? encodeCursor(ORDER, last.createdOrder, last.id) : undefined,
  };
}

/** Adds up the checkpoints of each day over all projects, the latest day first. */
export async function countAllDays({ storage }: Pick<Deps, "storage">, input: CountAllDays): Promise<AllDays> {
  const { mayTouch, utcOffsetMinutes = 0, limit = 90, ...given } = input;
  const filter = utcTimes(given);
  const sums = new Map<string, number>();
  const degraded = await visitProjects(storage, mayTouch, async (_, store) => {
    for (const { day, count } of await store.days({ filter, utcOffsetMinutes, limit })) sums.set(day, (sums.get(day) ?? 0) + count);
  });
  const days = [...sums].map(([day, count]) => ({ day, count })).sort((a, b) => (a.day < b.day ? 1 : -1));
  return { days: days.slice(0, limit), partial: degraded.length > 0, degraded };
}

/** Projects that are read at the same time. */
const CONCURRENCY = 4;

/** Visits the projects that have checkpoints, the most recently changed first, and returns why others are missing. */
async function visitProjects(
  storage: Storage,
  mayTouch: (projectPath: string) => boolean,
  visit: (projectPath: string, store: CheckpointStore) => Promise<void>,
): Promise<string[]> {
  const { projects, unread } = await storage.catalogue({ isWanted: mayTouch });
  const degraded = unread.map(({ projectPath, reason }) => `${projectPath}: ${reason}`);
  const filled = projects.filter(({ checkpoints }) => checkpoints > 0);
  const byActivity = filled.sort((a, b) => ((a.lastActivityAt ?? "") < (b.lastActivityAt ?? "") ? 1 : -1));
  const late = await forEachParallel(byActivity.slice(0, LIMITS.projectsListed), { concurrency: CONCURRENCY }, async ({ projectPath }) => {
    try {
      const project = await storage.find(projectPath);
      if (project) await visit(projectPath, project.checkpoints);
    } catch (error) {
      degraded.push(`${projectPath}: ${asCairnError(error).message}`);
    }
  });
  const left = late.length + Math.max(0, byActivity.length - LIMITS.projectsListed);
  if (left > 0) degraded.push(`${left} projects were not read: ${late.length > 0 ? NO_TIME : "there are too many"}`);
  return degraded;
}

const placeOf = ({ createdOrder, id }: Checkpoint) => ({ at: createdOrder, id });

function newestSource(sources: readonly Source[]): Source | undefined {
  let best: Source | undefined;
  for (const source of sources)
    if (source.buffer[0] && (!best || newestFirst(placeOf(source.buffer[0]), placeOf(best.buffer[0]!)) < 0)) best = source;
  return best;
}

/** Marks the records of each project against its own code, and keeps their order. */
async function markAll(markRecords: MarkRecords, records: readonly Checkpoint[]): Promise<readonly Checkpoint[]> {
  const marked = new Map<string, Checkpoint>();
  for (const projectPath of new Set(records.map((record) => record.projectPath))) {
    const own = records.filter((record) => record.projectPath === projectPath);
    for (const record of await markRecords(projectPath, own)) marked.set(`${projectPath}\n${record.id}`, record);
  }
  return records.map((record) => marked.get(`${record.projectPath}\n${record.id}`) ?? record);
}
