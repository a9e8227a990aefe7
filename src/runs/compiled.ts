import { setTimeout as sleep } from "node:timers/promises";
import { CairnError } from "../model/errors.ts";
import { newId } from "../model/ids.ts";
import type { Run, RunCheckpointInfo, RunLease, RunStatus } from "../model/run.ts";
import type { ClaimedRun } from "../ports/run-queue.ts";
import { hasEnded, newOwner } from "../scheduling/owner.ts";
import { encodeText } from "../text/plain-data.ts";
import { END, type GraphDefinition, START } from "./definition.ts";
import { EventQueue, type RunEvent } from "./events.ts";
import { Execution } from "./execution.ts";
import { firstCheckpoint } from "./first-checkpoint.ts";
import { HandedOver } from "./hand-over.ts";
import { answerCheckpoint, type Line, lineFrom } from "./line.ts";
import { shapeMermaid } from "./mermaid.ts";
import type {
  ClaimedOptions,
  EnqueueOptions,
  ExecutionOptions,
  ResumeFromOptions,
  ResumeOptions,
  RunOptions,
  RunResult,
} from "./options.ts";
import { type RecoverOptions, type Recovery, recoverRuns } from "./recover.ts";
import { checkedState, pointOf, positionOf, runOfGraph, stateAt } from "./resume.ts";
import { storeShape } from "./retrying-store.ts";
import { isHeld, messageOf, RunError, storedReason } from "./run-error.ts";
import { shapeOf } from "./shape.ts";

/** Milliseconds between two attempts to acquire a lease that another process has. */
const LEASE_POLL_MS = 500;

/** A validated, immutable graph. It starts, resumes and recovers runs. */
export interface CompiledGraph<S> {
  readonly name: string;
  /** Equal for equal graphs, in every process. */
  readonly fingerprint: string;
  readonly definition: GraphDefinition;
  /** Runs from the entry to the end or to a pause; rejects with a `RunError`. */
  run(state: S, options?: RunOptions<S>): Promise<RunResult<S>>;
  /** Runs the graph and yields its events. Leaving the loop cancels the run. */
  stream(state: S, options?: RunOptions<S>): AsyncGenerator<RunEvent<S>, void, void>;
  /** Continues a run that stopped, was killed or paused. Returns the result again for a completed run. */
  resume(runId: string, options: ResumeOptions<S>): Promise<RunResult<S>>;
  streamResume(runId: string, options: ResumeOptions<S>): AsyncGenerator<RunEvent<S>, void, void>;
  /** Rewinds to an earlier checkpoint and continues from there, in the same run or as a new one. */
  resumeFrom(runId: string, options: ResumeFromOptions<S>): Promise<RunResult<S>>;
  /** Resumes the runs of this graph whose process ended. */
  recover(options: RecoverOptions<S>): Promise<readonly Recovery<S>[]>;
  /** Puts a run into the queue and returns it. A worker of this graph, in any process, executes it: see `worker`. */
  enqueue(state: S, options: EnqueueOptions): Promise<Run>;
  /** Continues a run that a worker has claimed. Returns `queued` if the worker gave it back. */
  continueClaimed(
    claim: ClaimedRun,
    options: ClaimedOptions,
  ): Promise<RunResult<S> | { readonly status: "queued"; readonly runId: string }>;
  toMermaid(): string;
}

export function compiledGraph<S>(definition: GraphDefinition): CompiledGraph<S> {
  type Options = RunOptions<never>;
  type Queue = EventQueue<RunEvent<never>>;
  const root = (execution: Execution) => ({ graph: definition, branch: "", stop: END, scope: execution.scope });

  async function run(input: unknown, options: Options, queue?: Queue): Promise<RunResult<unknown>> {
    const runId = options.runId ?? newId();
    const execution = new Execution(runId, options, queue);
    const state = checkedState(definition, input, runId);
    const line: Line = {
      ...root(execution),
      state,
      encoded: undefined,
      next: definition.entry,
      previous: START,
      step: 0,
      failed: 0,
      answers: [],
    };
    const lease = execution.store && (await begin(execution, line, { project: options.project ?? null }));
    return execution.go(line, lease, false);
  }

  /** Stores the run and its first state before the first step. */
  async function begin(
    execution: Execution,
    line: Line,
    more: { project?: string | null; parent?: { runId: string; sequence: number } },
  ): Promise<RunLease> {
    const { runId } = execution;
    try {
      line.state = execution.redact(line.state);
      line.encoded = encodeText(line.state);
    } catch (cause) {
      throw new RunError("state", messageOf(cause), { runId, state: line.state, cause });
    }
    await execution.retryingStore!.storeShape(definition);
    return execution.retryingStore!.start({
      runId,
      graph: definition.name,
      fingerprint: definition.fingerprint,
      ...more,
      owner: newOwner(),
      leaseMs: execution.settings.leaseMs,
      first: { nodeId: START, nextNode: line.next, kind: "start", step: line.step, state: line.encoded },
    });
  }

  async function resume(runId: string, options: ResumeOptions<never>, queue?: Queue): Promise<RunResult<unknown>> {
    const { store, acceptGraphChange = false } = options;
    const execution = new Execution(runId, options, queue);
    const known = await runOfGraph(store, runId, definition, acceptGraphChange);
    if (known.status === "completed" && options.state === undefined)
      return {
        status: "completed",
        runId,
        state: checkedState(definition, await stateAt(store, (await positionOf(store, runId)).root), runId),
      };

    await execution.retryingStore!.storeShape(definition);
    const lease = await acquireLease(execution, known).catch(async (error: unknown) => {
      if (!options.wait || !(error instanceof RunError) || error.kind !== "lease") return ignoreConflict(error);
      options.onWait?.({ runId, leaseUntil: known.leaseUntil, leaseOwner: known.leaseOwner });
      await sleep(LEASE_POLL_MS, undefined, options.signal && { signal: options.signal }).catch((cause) => {
        throw new RunError("cancelled", "The wait for the lease was cancelled.", { runId, cause });
      });
      return undefined;
    });
    if (!lease) return resume(runId, options, queue);
    const line = await prepare(execution, lease, known.status, () => restoreLine(execution, lease, options));
    return execution.go(line, lease, true);
  }

  /** Returns the main line at the run's position, with the answers and the state of the caller. */
  async function restoreLine(
    execution: Execution,
    lease: RunLease,
    options: Pick<ResumeOptions<never>, "state" | "input" | "inputs">,
  ): Promise<Line> {
    const { runId } = execution;
    const store = execution.store!;
    const position = await positionOf(store, runId);
    const line = lineFrom(await store.loadAt(runId, position.root.sequence), root(execution));
    if (options.state !== undefined) await rewind(execution, line, lease, options.state, position.root.sequence);
    else line.state = checkedState(definition, line.state, runId);
    // A new state invalidates the progress of branches that started with the old one.
    const lines = options.state === undefined ? position.lines : new Map([["", position.root]]);
    execution.lines = await answer(execution, line, lines, lease, options);
    return line;
  }

  async function continueClaimed(
    { lease }: ClaimedRun,
    options: ClaimedOptions,
  ): Promise<RunResult<unknown> | { status: "queued"; runId: string }> {
    const { runId } = lease;
    const execution = new Execution(runId, options as ExecutionOptions);
    let line: Line;
    try {
      line = await restoreLine(execution, lease, {});
    } catch (error) {
      // Another worker would fail in the same way. If only the store failed, the lease expires and the run is claimed again.
      const code = error instanceof CairnError ? error.code : "internal";
      const note = JSON.stringify({ kind: "state", message: storedReason(messageOf(error)) });
      if (code !== "unavailable" && code !== "conflict") await execution.retryingStore!.release(lease, { status: "failed", note });
      throw error;
    }
    return execution.go(line, lease, true).catch((error) => {
      if (error instanceof HandedOver) return { status: "queued", runId };
      throw error;
    });
  }

  async function enqueue(input: unknown, { store, runId = newId(), project, delayMs }: EnqueueOptions): Promise<Run> {
    const state = checkedState(definition, input, runId);
    await storeShape(store, definition);
    const { name: graph, fingerprint, entry } = definition;
    return store.enqueue({ runId, graph, fingerprint, project: project ?? null, delayMs, first: firstCheckpoint(store, entry, state) });
  }

  /** Stores the answers before a step reads them, so that a crash does not lose them. */
  async function answer(
    execution: Execution,
    main: Line,
    lines: ReadonlyMap<string, RunCheckpointInfo>,
    lease: RunLease,
    { input, inputs = {} }: Pick<ResumeOptions<never>, "input" | "inputs">,
  ): Promise<ReadonlyMap<string, RunCheckpointInfo>> {
    const { runId } = execution;
    const paused = [...lines.values()].filter(({ kind }) => kind === "pause");
    const unknown = Object.keys(inputs).filter((node) => !paused.some(({ nodeId }) => nodeId === node));
    if (unknown.length > 0 || (input !== undefined && paused.length === 0))
      throw new CairnError(
        "invalid_input",
        `The run ${JSON.stringify(runId)} is not waiting for that input. It is paused at: ${paused.map(({ nodeId }) => nodeId).join(", ") || "nothing"}.`,
      );
    const answered = new Map(lines);
    for (const info of paused) {
      const value = info.nodeId in inputs ? inputs[info.nodeId] : input;
      if (value === undefined) continue;
      const { branch } = info;
      const onMain = branch === "";
      const state = onMain ? main.encoded! : (await execution.store!.loadAt(runId, info.sequence)).state;
      const { checkpoint, answers } = answerCheckpoint(info, execution.redact(value), state);
      const step = onMain ? main.step : info.step;
      answered.set(branch, await execution.retryingStore!.save({ ...checkpoint, step }, { fence: lease.fence }));
      if (onMain) main.answers = answers;
    }
    return answered;
  }

  async function resumeFrom(runId: string, options: ResumeFromOptions<never>): Promise<RunResult<unknown>> {
    const { store, fork, acceptGraphChange = false } = options;
    const run = await runOfGraph(store, runId, definition, acceptGraphChange);
    const { checkpoint, next } = await pointOf(store, runId, options);
    const execution = new Execution(fork ?? runId, options);
    const line: Line = { ...lineFrom(checkpoint, root(execution)), next, failed: 0, answers: [] };
    if (fork !== undefined) {
      line.state = checkedState(definition, options.state ?? line.state, fork);
      line.step = 0;
      const lease = await begin(execution, line, { project: run.project, parent: { runId, sequence: checkpoint.sequence } });
      return execution.go(line, lease, true);
    }
    const lease = await acquireLease(execution, run);
    await prepare(execution, lease, run.status, () => rewind(execution, line, lease, options.state ?? line.state, checkpoint.sequence));
    return execution.go(line, lease, true);
  }

  /** Sets the run's position to the line with one more checkpoint. The history stays complete. */
  async function rewind(execution: Execution, line: Line, lease: RunLease, state: unknown, sequence: number): Promise<void> {
    const { runId } = execution;
    line.state = execution.redact(checkedState(definition, state, runId));
    line.encoded = encodeText(line.state);
    // Step numbers continue, so that a repeated step has another idempotency key.
    line.step = Math.max(line.step, (await positionOf(execution.store!, runId)).root.step) + 1;
    const { next: nextNode, step, encoded } = line;
    await execution.retryingStore!.save(
      { runId, nodeId: line.previous ?? START, nextNode, kind: "rewind", step, state: encoded, note: encodeText({ sequence }) },
      { fence: lease.fence },
    );
  }

  /** Acquires the lease if the run is unchanged, at once if its owner's process has ended; otherwise reads it again. */
  async function acquireLease({ runId, retryingStore, settings: { leaseMs } }: Execution, expected: Run): Promise<RunLease> {
    try {
      const { leaseOwner } = expected;
      const endedOwner = leaseOwner !== null && hasEnded(leaseOwner) ? leaseOwner : undefined;
      return await retryingStore!.acquire(runId, { owner: newOwner(), leaseMs, fingerprint: definition.fingerprint, expected, endedOwner });
    } catch (cause) {
      if (isHeld(cause)) throw new RunError("lease", cause.message, { runId, cause });
      throw cause;
    }
  }

  /** Runs the preparation under the lease. If it fails, the lease is released with the previous status. */
  async function prepare<T>(execution: Execution, lease: RunLease, status: RunStatus, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      // If the release fails too, the lease expires.
      await execution.retryingStore!.release(lease, { status }).catch(() => {});
      throw error;
    }
  }

  async function* streamEvents(
    options: Options,
    start: (options: Options, queue: Queue) => Promise<unknown>,
  ): AsyncGenerator<RunEvent<S>, void, void> {
    const queue: Queue = new EventQueue();
    const controller = new AbortController();
    const signal = options.signal ? AbortSignal.any([options.signal, controller.signal]) : controller.signal;
    let failure: unknown;
    const running = start({ ...options, signal }, queue)
      .catch((error) => {
        failure = error;
      })
      .finally(() => queue.close());
    try {
      yield* queue.read() as AsyncGenerator<RunEvent<S>, void, void>;
    } finally {
      controller.abort();
      queue.close();
      await running;
    }
    if (failure) throw failure;
  }

  const compiled: CompiledGraph<S> = {
    name: definition.name,
    fingerprint: definition.fingerprint,
    definition,
    run: (state, options = {}) => run(state, options as Options) as Promise<RunResult<S>>,
    stream: (state, options = {}) => streamEvents(options as Options, (given, queue) => run(state, given, queue)),
    resume: (runId, options) => resume(runId, options as unknown as ResumeOptions<never>) as Promise<RunResult<S>>,
    streamResume: (runId, options) =>
      streamEvents(options as Options, (given, queue) => resume(runId, { ...options, ...given } as ResumeOptions<never>, queue)),
    resumeFrom: (runId, options) => resumeFrom(runId, options as unknown as ResumeFromOptions<never>) as Promise<RunResult<S>>,
    recover: (options) => recoverRuns(compiled, options),
    enqueue,
    continueClaimed: (claim, options) => continueClaimed(claim, options) as ReturnType<CompiledGraph<S>["continueClaimed"]>,
    toMermaid: () => shapeMermaid(shapeOf(definition)),
  };
  return Object.freeze(compiled);
}

/** Returns `undefined` for the conflict of a concurrent change, so that the caller reads the run again. */
function ignoreConflict(error: unknown): undefined {
  if (error instanceof CairnError && error.details?.kind === "moved") return undefined;
  throw error;
}
