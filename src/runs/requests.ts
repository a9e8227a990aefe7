import { isDeepStrictEqual } from "node:util";
import { CairnError } from "../model/errors.ts";
import { isQueued, type Run } from "../model/run.ts";
import { runNotFoundError } from "../model/run-rules.ts";
import type { QueuedRun, RunWorker } from "../ports/run-queue.ts";
import type { RunStore } from "../ports/run-store.ts";
import { decodeState } from "../text/plain-data.ts";
import { firstCheckpoint } from "./first-checkpoint.ts";
import { findListening, isListening, type Listening } from "./listening.ts";
import { answerQuestion } from "./questions.ts";
import { pointOf } from "./resume.ts";
import type { MaySee } from "./service.ts";

/** The result of a request that a worker carries out. */
export interface Requested extends Listening {
  readonly run: Run;
  /** Whether this call changed something; false when it repeats an earlier one. */
  readonly changed: boolean;
}

/** Requests to the process that has a run's graph. Each is stored with the run; a worker carries it out. */
export interface RunRequests {
  /** Answers the question of a paused run, exactly once. */
  answer(
    input: { readonly runId: string; readonly node?: string | undefined; readonly sequence?: number | undefined; readonly answer: unknown },
    maySee?: MaySee,
  ): Promise<Requested>;
  /** Asks for a stopped run to be continued. */
  resume(input: { readonly runId: string }, maySee?: MaySee): Promise<Requested>;
  /** Creates a new run that continues from a checkpoint of another. */
  fork(
    input: {
      readonly runId: string;
      readonly sequence: number;
      readonly newRunId?: string | undefined;
      /** Replaces the state of the checkpoint. */
      readonly state?: unknown;
      /** Runs the node of the checkpoint again, instead of the next one. */
      readonly replay?: boolean | undefined;
    },
    maySee?: MaySee,
  ): Promise<Requested>;
  /** Queues a new run of a graph that a worker has, or that has run before. */
  enqueue(
    input: {
      readonly graph: string;
      readonly input: unknown;
      readonly runId?: string | undefined;
      readonly project?: string | undefined;
      readonly delaySeconds?: number | undefined;
    },
    maySee?: MaySee,
  ): Promise<Requested>;
  /** Returns the workers that listen, and the ones that ended in the last week. Callers without access to all projects see no commands. */
  workers(
    input?: { readonly graph?: string | undefined; readonly limit?: number | undefined },
    maySee?: MaySee,
  ): Promise<{ readonly workers: readonly RunWorker[] }>;
}

const WORKERS_SHOWN = 100;

export function runRequests({ store, newId }: { readonly store: RunStore; readonly newId: () => string }): RunRequests {
  async function findVisible(runId: string, maySee: MaySee | undefined): Promise<Run> {
    const run = await store.getRun(runId);
    if (!run || (maySee && !maySee(run.project))) throw runNotFoundError(runId);
    return run;
  }
  const requested = async (run: Run, changed: boolean, maySee: MaySee | undefined): Promise<Requested> => ({
    run,
    changed,
    ...(await findListening(store, run, maySee)),
  });

  /** Creates a queued run. The same request again returns the existing run. */
  async function create(run: QueuedRun, maySee: MaySee | undefined): Promise<Requested> {
    try {
      return await requested(await store.enqueue(run), true, maySee);
    } catch (error) {
      if (!(error instanceof CairnError) || error.details?.kind !== "exists") throw error;
      const known = await store.getRun(run.runId);
      const [first] = known ? (await store.history(run.runId)).slice(-1) : [];
      const same =
        known?.graph === run.graph &&
        known.project === (run.project ?? null) &&
        isDeepStrictEqual(known.parent, run.parent ?? null) &&
        first?.kind === "start" &&
        first.nextNode === run.first.nextNode &&
        isDeepStrictEqual(decodeState((await store.loadAt(run.runId, first.sequence)).state), decodeState(run.first.state));
      if (!known || !same) throw error;
      return requested(known, false, maySee);
    }
  }

  return {
    async answer({ runId, ...answer }, maySee) {
      await findVisible(runId, maySee);
      const { run, stored } = await answerQuestion(store, runId, answer);
      return requested(run, stored, maySee);
    },

    async resume({ runId }, maySee) {
      const run = await findVisible(runId, maySee);
      const at = JSON.stringify(runId);
      if (run.graph === "")
        throw new CairnError("invalid_input", `The run ${at} was saved without a graph, so that no worker can continue it.`);
      if (run.status === "completed")
        throw new CairnError("conflict", `The run ${at} is completed. To run a part of it again, fork it from a checkpoint.`);
      if (run.status === "paused")
        throw new CairnError("conflict", `The run ${at} waits for an answer. Answer its question to continue it.`);
      if (isQueued(run.status)) return requested(run, false, maySee);
      return requested(await store.requeue(runId, { status: "queued", expected: run }), true, maySee);
    },

    async fork({ runId, sequence, newRunId = newId(), state, replay }, maySee) {
      const { graph, fingerprint, project } = await findVisible(runId, maySee);
      const { checkpoint, next } = await pointOf(store, runId, { sequence, replay });
      const first =
        state === undefined ? { ...firstCheckpoint({}, next, null), state: checkpoint.state } : firstCheckpoint(store, next, state);
      return create({ runId: newRunId, graph, fingerprint, project, parent: { runId, sequence: checkpoint.sequence }, first }, maySee);
    },

    async enqueue({ graph, input, runId = newId(), project = null, delaySeconds = 0 }, maySee) {
      if (maySee && !maySee(project))
        throw new CairnError(
          "forbidden",
          project === null ? "This key may queue only runs of its projects. Name one." : "This key has no access to that project.",
        );
      const { fingerprint, entry } = await findGraph(store, graph);
      const first = firstCheckpoint(store, entry, input);
      return create({ runId, graph, fingerprint, project, first, delayMs: delaySeconds * 1_000 }, maySee);
    },

    async workers({ graph, limit = WORKERS_SHOWN } = {}, maySee) {
      const found = await store.listWorkers({ graph, limit });
      const hidden = maySee?.(null) === false ? { command: null, folder: null } : {};
      return { workers: found.map((worker) => ({ ...worker, ...hidden, listening: isListening(worker) })) };
    },
  };
}

/** Returns the version of a graph that new runs get: that of a listening worker, else the newest. */
async function findGraph(store: RunStore, graph: string): Promise<{ readonly fingerprint: string; readonly entry: string }> {
  const shapes = await store.listGraphs({ graph, limit: WORKERS_SHOWN });
  const [newest] = shapes;
  if (!newest)
    throw new CairnError(
      "not_found",
      `No worker has announced the graph ${JSON.stringify(graph)}, and no run of it is stored. Start a worker with it: cairn run work <module that exports the graph>`,
    );
  const workers = (await store.listWorkers({ graph, limit: WORKERS_SHOWN })).filter(isListening);
  return shapes.find(({ fingerprint }) => workers.some((worker) => worker.fingerprint === fingerprint)) ?? newest;
}
