import { CairnError } from "../model/errors.ts";
import type { Clock } from "../model/ids.ts";
import type { Run, RunCheckpointInfo, RunStatus, StoredState } from "../model/run.ts";
import { runNotFoundError } from "../model/run-rules.ts";
import type { PruneReport, RunStore } from "../ports/run-store.ts";
import { decodeCursor, encodeCursor } from "../text/cursor.ts";
import { decodeState } from "../text/plain-data.ts";
import { olderThanTime } from "../text/point-in-time.ts";
import { countPrunable } from "./count-prunable.ts";

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
  readonly stateJson?: string | undefined;
}

/** The stored runs of all processes. */
export interface Runs {
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
const STATE_SHOWN_BYTES = 1_000_000;

export function runs({ store, now }: { readonly store: RunStore; readonly now: Clock }): Runs {
  /** Returns the run; raises `not_found` also for a run that the caller may not see. */
  async function visible(runId: string, maySee: MaySee = everything): Promise<Run> {
    const run = await store.getRun(runId);
    if (!run || !maySee(run.project)) throw runNotFoundError(runId);
    return run;
  }

  return {
    store,

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
      return { run: view(run), checkpoints, steps: [...newest].reverse(), truncated: newest.length === STEPS_SHOWN, stateJson };
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

/** Returns the state as readable JSON; `undefined` for a large state. */
function stateText(state: StoredState): string | undefined {
  if (state.length > STATE_SHOWN_BYTES) return undefined;
  return JSON.stringify(decodeState(state), (_, value) => {
    if (typeof value === "bigint") return value.toString();
    if (value instanceof Map) return [...value];
    if (value instanceof Set) return [...value];
    return value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value;
  });
}
