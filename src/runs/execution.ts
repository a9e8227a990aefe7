import { CairnError } from "../model/errors.ts";
import type { NewRunCheckpoint, RunCheckpointInfo, RunLease, RunStatus } from "../model/run.ts";
import type { RunStore, SaveOptions } from "../ports/run-store.ts";
import { decodeState, encodeText } from "../text/plain-data.ts";
import { END, type NodeDefinition, ROUTE_AGAIN } from "./definition.ts";
import type { EventQueue, RunEvent } from "./events.ts";
import { runFork, runSubgraph } from "./fork.ts";
import { HandedOver } from "./hand-over.ts";
import { keepLease } from "./heartbeat.ts";
import type { Line, LineNote } from "./line.ts";
import { type ExecutionOptions, type RunResult, type Settings, settingsOf } from "./options.ts";
import { type RetryingStore, retryingStore } from "./retrying-store.ts";
import { isTimeLimit, messageOf, outOfTime, RunError, storedReason } from "./run-error.ts";
import { Scope } from "./scope.ts";
import { Context, Paused, retryWait } from "./step.ts";

/** Milliseconds of consecutive steps before the engine yields to timers, heartbeats and sockets. */
const YIELD_MS = 10;

/** Executes one run in this process, from acquiring its lease to releasing it. */
export class Execution {
  readonly runId: string;
  readonly options: ExecutionOptions;
  readonly settings: Settings;
  readonly store: RunStore | undefined;
  readonly retryingStore: RetryingStore | undefined;
  readonly scope = new Scope();
  /** The newest checkpoints of the lines of a resumed run. */
  lines: ReadonlyMap<string, RunCheckpointInfo> = new Map();
  readonly queue: EventQueue<RunEvent<never>> | undefined;
  readonly #watched: boolean;
  readonly #progress: ((context: Context, data: unknown) => void) | undefined;
  #lease: RunLease | undefined;
  #underLease: SaveOptions = {};
  #iterations = 0;
  #saves = 0;
  #turn = performance.now();

  constructor(runId: string, options: ExecutionOptions, queue?: EventQueue<RunEvent<never>>) {
    this.runId = runId;
    this.options = options;
    this.settings = settingsOf(options);
    this.store = options.store;
    this.retryingStore = options.store && retryingStore(options.store, this.settings.storeWaitMs);
    this.queue = queue;
    this.#watched = options.onEvent !== undefined || queue !== undefined;
    this.#progress = this.#watched ? ({ node, branch }, data) => this.emit({ type: "progress", runId, node, branch, data }) : undefined;
  }

  /** Runs the main line to its end and always releases the lease. */
  async go(line: Line, lease: RunLease | undefined, resumed: boolean): Promise<RunResult<unknown>> {
    const { signal, timeoutMs, handOver } = this.options;
    this.#lease = lease;
    this.#underLease = lease ? { fence: lease.fence } : {};
    const stopHeartbeat = lease && this.store ? keepLease(this.store, lease, this.settings.leaseMs, this.scope) : undefined;
    const cancel = () => this.scope.abort(new CairnError("cancelled", "The run was cancelled by its caller.", { cause: signal?.reason }));
    const timer =
      timeoutMs === undefined
        ? undefined
        : setTimeout(() => this.scope.abort(outOfTime(`The run took longer than ${timeoutMs} ms.`)), timeoutMs);
    if (signal?.aborted) cancel();
    else signal?.addEventListener("abort", cancel, { once: true });
    const giveBack = () => this.scope.abort(new HandedOver(this.runId));
    if (handOver?.now.aborted) giveBack();
    else handOver?.now.addEventListener("abort", giveBack, { once: true });
    try {
      this.emit({ type: "run_started", runId: this.runId, resumed });
      const state = await this.runLine(line);
      this.emit({ type: "run_completed", runId: this.runId, state: state as never });
      return { status: "completed", runId: this.runId, state };
    } catch (error) {
      if (error instanceof Paused) {
        await this.#releaseLease("paused", null);
        this.emit({ type: "run_paused", runId: this.runId, interrupts: error.interrupts });
        return { status: "paused", runId: this.runId, state: line.state, interrupts: error.interrupts };
      }
      const failure = this.failure(error, line);
      if (failure instanceof HandedOver) {
        await this.#releaseLease("queued", null);
        throw failure;
      }
      const { kind, node, message } = failure;
      if (kind !== "lease")
        await this.#releaseLease(
          kind === "cancelled" ? "cancelled" : "failed",
          JSON.stringify({ kind, node, message: storedReason(message) }),
        ).catch(() => {
          // Report the original failure; the lease expires, and recover() finds the run.
        });
      this.emit({ type: "run_failed", runId: this.runId, error: failure as never });
      throw failure;
    } finally {
      stopHeartbeat?.();
      clearTimeout(timer);
      signal?.removeEventListener("abort", cancel);
      handOver?.now.removeEventListener("abort", giveBack);
    }
  }

  /**
   * Returns the state as the store wants it. The next step works with it too, so an uninterrupted run and one that is resumed
   * after a crash see the same state.
   */
  redact(state: unknown): unknown {
    return this.store?.redactState ? this.store.redactState(state) : state;
  }

  /** Executes the steps of a line in sequence; saves each one before the next starts. */
  async runLine(line: Line): Promise<unknown> {
    const { graph, scope } = line;
    const handOver = this.options.handOver?.afterStep;
    while (line.next !== line.stop) {
      if (scope.aborted) throw this.failure(scope.reason, line);
      if (handOver?.aborted) throw new HandedOver(this.runId);
      const now = performance.now();
      if (now - this.#turn > YIELD_MS) await this.#giveTurn();
      if (this.queue) await this.queue.room();
      if (line.next === ROUTE_AGAIN) {
        line.next = await this.#route(line, line.previous!, line.state);
        continue;
      }
      if (++this.#iterations > this.settings.maxIterations) throw this.#tooManySteps(line);
      const node = graph.nodes.get(line.next);
      if (!node) throw this.#unknownNode(line);
      const state = this.redact(node.type === "step" ? await this.#runStep(node, line) : await this.#runInner(node, line));
      let next: string;
      const exit = graph.exits.get(node.name)!;
      if ("to" in exit) next = exit.to;
      else
        try {
          next = await this.#route(line, node.name, state);
        } catch (error) {
          // The step finished and must not run again; only its router does.
          await this.#finishStep(line, node.name, state, ROUTE_AGAIN);
          throw error;
        }
      await this.#finishStep(line, node.name, state, next);
    }
    return line.state;
  }

  async #finishStep(line: Line, node: string, state: unknown, next: string): Promise<void> {
    const attempt = line.failed + 1;
    if (this.store) {
      const encoded = this.#encode(state, line, node);
      await this.save(
        line,
        { nodeId: node, nextNode: next, kind: "node", attempt, step: line.step + 1, state: encoded },
        next === END && line.branch === "" ? "completed" : undefined,
      );
      line.encoded = encoded;
    }
    line.previous = node;
    line.next = next;
    line.state = state;
    line.step++;
    line.failed = 0;
    line.answers = NONE;
    if (this.#watched)
      this.emit({ type: "step_finished", runId: this.runId, node, branch: line.branch, attempt, next, state: state as never });
  }

  /** Saves a checkpoint of a line. */
  async save(line: Line, checkpoint: Omit<NewRunCheckpoint, "runId" | "branch" | "previousNode">, status?: RunStatus): Promise<void> {
    const { nodeId } = checkpoint;
    try {
      const options = status === undefined ? this.#underLease : { ...this.#underLease, status };
      const saved = await this.retryingStore!.save(
        {
          runId: this.runId,
          nodeId,
          state: checkpoint.state,
          nextNode: checkpoint.nextNode ?? null,
          previousNode: line.previous,
          attempt: checkpoint.attempt ?? 1,
          branch: line.branch,
          step: checkpoint.step ?? 0,
          kind: checkpoint.kind ?? "node",
          note: checkpoint.note ?? null,
        },
        options,
      );
      if (this.#watched)
        this.emit({ type: "checkpoint_saved", runId: this.runId, node: nodeId, branch: line.branch, sequence: saved.sequence });
    } catch (error) {
      const lost = error instanceof CairnError && error.code === "conflict";
      if (!lost && this.options.onCheckpointError === "warn") {
        this.emit({ type: "checkpoint_failed", runId: this.runId, node: nodeId, branch: line.branch, error });
        return;
      }
      if (lost) this.scope.abort(error);
      throw new RunError(
        lost ? "lease" : "checkpoint",
        `The checkpoint of ${JSON.stringify(nodeId)} could not be saved: ${messageOf(error)}`,
        {
          runId: this.runId,
          node: nodeId,
          branch: line.branch,
          state: line.state,
          cause: error,
        },
      );
    }
    const { keepHistory } = this.options;
    if (keepHistory !== undefined && ++this.#saves % Math.max(keepHistory, 20) === 0 && status === undefined)
      // A failed retention does not fail the run; the next one deletes more.
      await this.store!.prune({ runId: this.runId, keepLast: keepHistory }).catch((error) =>
        this.emit({ type: "checkpoint_failed", runId: this.runId, node: nodeId, branch: line.branch, error }),
      );
  }

  async #runStep(node: NodeDefinition & { type: "step" }, line: Line): Promise<unknown> {
    for (let tries = 1; ; tries++) {
      const attempt = line.failed + 1;
      if (this.#watched) this.emit({ type: "step_started", runId: this.runId, node: node.name, branch: line.branch, attempt });
      try {
        return await this.#try(node, line, attempt);
      } catch (error) {
        if (error instanceof Paused) {
          await this.#pause(error, line, node.name, attempt);
          throw error;
        }
        if (line.scope.aborted) throw this.failure(line.scope.reason, line);
        const wait = retryWait(node.retry, error, tries);
        this.emit({ type: "step_failed", runId: this.runId, node: node.name, branch: line.branch, attempt, error, retryInMs: wait });
        await this.#recordFailure(line, node.name, attempt, error);
        line.failed = attempt;
        if (wait === undefined) {
          const kind = isTimeLimit(error) ? "timeout" : "node";
          throw new RunError(kind, `The step ${JSON.stringify(node.name)} failed: ${messageOf(error)}`, {
            runId: this.runId,
            node: node.name,
            branch: line.branch,
            state: line.state,
            cause: error,
          });
        }
        await line.scope.sleep(wait).catch(() => {
          throw this.failure(line.scope.reason, line);
        });
        if (line.encoded) line.state = decodeState(line.encoded);
      }
    }
  }

  async #try(node: NodeDefinition & { type: "step" }, line: Line, attempt: number): Promise<unknown> {
    const { timeoutMs, name } = node;
    const scope = timeoutMs === undefined ? line.scope : new Scope(line.scope);
    const context = new Context(this.runId, name, line.branch, line.step + 1, attempt, scope, line.answers, this.#progress);
    const timer =
      timeoutMs === undefined
        ? undefined
        : setTimeout(() => scope.abort(outOfTime(`The step ${JSON.stringify(name)} took longer than ${timeoutMs} ms.`)), timeoutMs);
    try {
      const { aroundStep } = this.options;
      const span = { runId: this.runId, graph: line.graph.name, node: name, branch: line.branch, attempt };
      const work = aroundStep
        ? aroundStep(span, async () => node.run(line.state as never, context))
        : node.run(line.state as never, context);
      const state = isPromise(work) ? await scope.race(work) : work;
      if (context.paused) throw context.paused;
      if (state === undefined) throw new TypeError(`the step ${JSON.stringify(name)} returned nothing; a step must return the next state`);
      return state;
    } catch (error) {
      throw context.paused ?? error;
    } finally {
      if (timer) {
        clearTimeout(timer);
        scope.close();
      }
    }
  }

  async #runInner(node: NodeDefinition & { type: "fork" | "graph" }, line: Line): Promise<unknown> {
    if (this.#watched) this.emit({ type: "step_started", runId: this.runId, node: node.name, branch: line.branch, attempt: 1 });
    return node.type === "fork" ? runFork(this, node, line) : runSubgraph(this, node, line);
  }

  async #pause({ interrupts }: Paused, line: Line, node: string, attempt: number): Promise<void> {
    if (!this.store)
      throw new RunError("state", `The step ${JSON.stringify(node)} asks for input, but the run has no store to wait in. Give it one.`, {
        runId: this.runId,
        node,
        state: line.state,
      });
    const note = encodeText({ question: interrupts[0]!.question, answers: line.answers } satisfies LineNote);
    const state = line.encoded ?? this.#encode(line.state, line, node);
    await this.save(line, { nodeId: node, nextNode: node, kind: "pause", attempt, step: line.step, state, note });
  }

  /** Saves a failed attempt, so that the next one, also after a crash, has its own number and idempotency key. */
  async #recordFailure(line: Line, node: string, attempt: number, error: unknown): Promise<void> {
    if (!this.store) return;
    const note = encodeText({ message: storedReason(messageOf(error)), answers: line.answers } satisfies LineNote);
    const state = line.encoded ?? this.#encode(line.state, line, node);
    await this.save(line, { nodeId: node, nextNode: node, kind: "failed", attempt, step: line.step, state, note });
  }

  async #route(line: Line, from: string, state: unknown): Promise<string> {
    const exit = line.graph.exits.get(from);
    if (!exit) throw this.#unknownNode(line);
    if ("to" in exit) return exit.to;
    let next: unknown;
    let cause: unknown;
    try {
      const chosen = exit.router(state as never);
      next = isPromise(chosen) ? await line.scope.race(chosen) : chosen;
    } catch (error) {
      cause = error;
    }
    if (cause === undefined && typeof next === "string" && exit.targets.includes(next)) return next;
    if (line.scope.aborted) throw this.failure(line.scope.reason, line);
    const problem = cause === undefined ? `chose ${JSON.stringify(next)}, which is not one of its targets` : `failed: ${messageOf(cause)}`;
    throw new RunError("router", `The router after ${JSON.stringify(from)} ${problem}.`, {
      runId: this.runId,
      node: from,
      branch: line.branch,
      state,
      cause,
    });
  }

  #encode(state: unknown, line: Line, node: string): string {
    try {
      return encodeText(state);
    } catch (cause) {
      throw new RunError("state", `After ${JSON.stringify(node)}: ${messageOf(cause)}`, {
        runId: this.runId,
        node,
        branch: line.branch,
        state,
        cause,
      });
    }
  }

  /** Converts any thrown value to the error of this run. */
  failure(error: unknown, line: Line): RunError {
    if (error instanceof RunError) return error;
    const code = error instanceof CairnError ? error.code : undefined;
    const kind = code === "cancelled" ? "cancelled" : code === "timeout" ? "timeout" : code === "conflict" ? "lease" : "node";
    return new RunError(kind, messageOf(error), { ...this.#place(line), cause: error });
  }

  #place({ next: node, branch, state }: Line) {
    return { runId: this.runId, node, branch, state };
  }

  emit(event: RunEvent<never>): void {
    if (!this.#watched) return;
    this.queue?.push(event);
    try {
      this.options.onEvent?.(event);
    } catch {
      // An observer must not affect the run.
    }
  }

  async #releaseLease(status: RunStatus, note: string | null): Promise<void> {
    if (this.#lease) await this.retryingStore!.release(this.#lease, { status, note });
  }

  async #giveTurn(): Promise<void> {
    await new Promise<void>((resolve) => setImmediate(resolve));
    this.#turn = performance.now();
  }

  #tooManySteps(line: Line): RunError {
    return new RunError(
      "max_iterations",
      `The run took ${this.settings.maxIterations} steps without reaching its end. Check its loops, or raise maxIterations.`,
      this.#place(line),
    );
  }

  #unknownNode(line: Line): RunError {
    return new RunError(
      "graph_changed",
      `The run continues at ${JSON.stringify(line.next)}, but this graph has no such node. Restore the node, or use resumeFrom with another checkpoint.`,
      this.#place(line),
    );
  }
}

const NONE: readonly unknown[] = [];

function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === "function";
}
