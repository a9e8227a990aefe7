import { CairnError } from "../model/errors.ts";
import type { Clock } from "../model/ids.ts";
import { isFinished, type Run, type RunCheckpointInfo, type RunStatus } from "../model/run.ts";
import { runNotFoundError } from "../model/run-rules.ts";
import type { PruneReport, RunStore } from "../ports/run-store.ts";
import { decodeCursor, encodeCursor } from "../text/cursor.ts";
import { olderThanTime } from "../text/point-in-time.ts";
import { countPrunable } from "./count-prunable.ts";
import { type RunInspection, runInspection } from "./inspection.ts";
import { findListening, type Listening } from "./listening.ts";
import { type Question, readQuestions } from "./questions.ts";
import { type RunRequests, runRequests } from "./requests.ts";
import { stateText } from "./state-json.ts";
import { type Worker, worker } from "./worker.ts";
import type { WorkerOptions } from "./worker-options.ts";

/** Returns whether a caller may see runs of a project; `null` for runs without one. */
export type MaySee = (project: string | null) => boolean;

export interface ListRuns {
  readonly status?: RunStatus | undefined;
  readonly graph?: string | undefined;
  readonly project?: string | undefined;
  readonly abandoned?: boolean | undefined;
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

export interface RunView extends Run {
  /** Why the run failed, or its result, as a message. */
  readonly reason?: string | undefined;
}

export interface RunDetails {
  readonly run: RunView;
  /** The number of stored checkpoints, with those of all branches. */
  readonly checkpoints: number;
  /** The newest steps, oldest first. */
  readonly steps: readonly RunCheckpointInfo[];
  /** Whether there are older steps than these. */
  readonly truncated: boolean;
  /** The questions that the run waits on. */
  readonly questions: readonly Question[];
  /** Whether a worker continues the run; absent if the run is finished or a process executes it. */
  readonly workers?: Listening | undefined;
  readonly stateJson?: string | undefined;
}

/** The stored runs of all processes. */
export interface Runs extends RunRequests, RunInspection {
  /** Starts a worker of these graphs and inboxes on this store. Close it before Cairn. */
  worker(options: Omit<WorkerOptions, "store">): Worker;
  /** Pass it to `run` and `resume` of your own graphs. */
  readonly store: RunStore;
  list(input: ListRuns, maySee?: MaySee): Promise<{ readonly runs: readonly RunView[]; readonly nextCursor?: string | undefined }>;
  get(
    input: { readonly runId: string; readonly sequence?: number | undefined; readonly includeState?: boolean | undefined },
    maySee?: MaySee,
  ): Promise<RunDetails>;
  history(
    input: { readonly runId: string; readonly limit?: number | undefined; readonly before?: number | undefined },
    maySee?: MaySee,
  ): Promise<{ readonly checkpoints: readonly RunCheckpointInfo[]; readonly nextBefore?: number | undefined }>;
  delete(input: { readonly runId: string }, maySee?: MaySee): Promise<{ readonly deleted: boolean }>;
  prune(
    input: {
      /** A duration before now (`7d`, `12h`, `4w`), or a time in ISO 8601. */
      readonly olderThan?: string | undefined;
      readonly keepLast?: number | undefined;
      readonly runId?: string | undefined;
      /** Only reports what would be deleted; `bytes` is then the size of the states before compression. */
      readonly dryRun?: boolean | undefined;
    },
    options?: { readonly maySee?: MaySee; readonly signal?: AbortSignal },
  ): Promise<PruneReport & { readonly dryRun: boolean }>;
}

const PAGE = 100;
/** The maximum number of steps in a drawing. */
const STEPS_SHOWN = 500;
const COUNTED_AT_ONCE = 1_000;

/** The configuration of workers. */
export type RunSettings = Pick<WorkerOptions, "concurrency" | "pollMs" | "leaseMs" | "graceMs">;

interface RunsDeps {
  readonly store: RunStore;
  readonly now: Clock;
  readonly newId: () => string;
  readonly settings?: RunSettings | undefined;
}

export function runs({ store, now, newId, settings = {} }: RunsDeps): Runs {
  /** Returns the run; raises `not_found` also for a run that the caller may not see. */
  async function visible(runId: string, maySee: MaySee = everything): Promise<Run> {
    const run = await store.getRun(runId);
    if (!run || !maySee(run.project)) throw runNotFoundError(runId);
    return run;
  }

  return {
    store,
    ...runRequests({ store, newId }),
    ...runInspection({ store }),
    worker: (options) => worker({ ...settings, ...options, store }),

    async list({ limit = 20, cursor, ...query }, maySee = everything) {
      const visible: Run[] = [];
      let after = cursor === undefined ? undefined : fromCursor(cursor);
      for (;;) {
        const page = await store.listRuns({ ...query, limit: PAGE, after });
        for (const run of page) {
          if (!maySee(run.project)) continue;
          if (visible.length === limit) return { runs: visible.map(view), nextCursor: toCursor(visible.at(-1)!) };
          visible.push(run);
        }
        if (page.length < PAGE) return { runs: visible.map(view) };
        after = page.at(-1)!;
      }
    },

    async get({ runId, sequence, includeState = false }, maySee) {
      const run = await visible(runId, maySee);
      const newest = await store.history(runId, { limit: STEPS_SHOWN, ...(sequence === undefined ? {} : { before: sequence + 1 }) });
      const target = sequence ?? newest.find(({ branch }) => branch === "")?.sequence;
      const stateJson = includeState && target !== undefined ? stateText((await store.loadAt(runId, target)).state) : undefined;
      const checkpoints = sequence === undefined && newest.length < STEPS_SHOWN ? newest.length : await countCheckpoints(store, runId);
      const open = run.graph !== "" && isOpen(run, now());
      const [questions, workers] = await Promise.all([
        open ? readQuestions(store, runId) : [],
        open ? findListening(store, run, maySee) : undefined,
      ]);
      const steps = [...newest].reverse();
      return { run: view(run), checkpoints, steps, truncated: newest.length === STEPS_SHOWN, questions, workers, stateJson };
    },

    async history({ runId, limit = 50, before }, maySee) {
      await visible(runId, maySee);
      const checkpoints = await store.history(runId, { limit: limit + 1, before });
      const page = checkpoints.slice(0, limit);
      return { checkpoints: page, nextBefore: checkpoints.length > limit ? page.at(-1)!.sequence : undefined };
    },

    async delete({ runId }, maySee = everything) {
      const run = await store.getRun(runId);
      if (!run || !maySee(run.project)) return { deleted: false };
      await store.deleteRun(runId);
      return { deleted: true };
    },

    async prune({ olderThan: before, keepLast, runId, dryRun = false }, { maySee = everything, signal } = {}) {
      if (runId !== undefined) await visible(runId, maySee);
      else if (!maySee(null)) throw new CairnError("forbidden", "This key may prune only runs of its projects. Name one run.");
      const rules = { olderThan: before === undefined ? undefined : olderThanTime(before, now()), keepLast };
      const report = dryRun
        ? await countPrunable(store, rules, runId, signal)
        : await store.prune({ ...rules, runId, ...(signal ? { signal } : {}) });
      return { ...report, dryRun };
    },
  };
}

async function countCheckpoints(store: RunStore, runId: string): Promise<number> {
  let count = 0;
  for (let before: number | undefined; ; ) {
    const page = await store.history(runId, { limit: COUNTED_AT_ONCE, before });
    count += page.length;
    before = page.at(-1)?.sequence;
    if (page.length < COUNTED_AT_ONCE) return count;
  }
}

/** Returns whether the run is unfinished and no process executes it. */
function isOpen({ status, leaseUntil }: Run, at: string): boolean {
  return !isFinished(status) && (leaseUntil === null || leaseUntil <= at);
}

const everything: MaySee = () => true;
const ORDER = "run";

function toCursor({ updatedAt, runId }: Run): string {
  return encodeCursor(ORDER, updatedAt, runId);
}

function fromCursor(cursor: string): { updatedAt: string; runId: string } {
  const { at, id } = decodeCursor(cursor, ORDER);
  return { updatedAt: at, runId: id };
}

/** Adds the message of the JSON note as `reason`. */
function view(run: Run): RunView {
  if (run.note === null) return run;
  try {
    const { message } = JSON.parse(run.note);
    return typeof message === "string" ? { ...run, reason: message } : run;
  } catch {
    return { ...run, reason: run.note }; // written by another engine
  }
}
