import { setTimeout as sleep } from "node:timers/promises";
import { CairnError } from "../model/errors.ts";
import { newId } from "../model/ids.ts";
import { hasEnded, newOwner } from "../scheduling/owner.ts";
import { retryDelayMs } from "../scheduling/retry.ts";
import { drainInbox } from "./drain-inbox.ts";
import { storeShape } from "./retrying-store.ts";
import { workerLane } from "./worker-lane.ts";
import { assertGraphLimits, type WorkerEvent, type WorkerGraph, type WorkerOptions, workerSettings } from "./worker-options.ts";

/** A pool that executes queued, answered and abandoned runs of its graphs, and drains its inboxes. */
export interface Worker {
  readonly workerId: string;
  /** The number of runs in execution. */
  readonly active: number;
  /** Resolves when a look for work has found none and nothing is in execution. */
  idle(): Promise<void>;
  /** Stops: lets the current steps finish, gives unfinished runs back to the queue, and resolves when nothing is in execution. */
  close(): Promise<void>;
}

/** The announcement of a worker lives this long, and is repeated after a third of it. */
const ANNOUNCE_MS = 15_000;
/** Milliseconds between two looks for runs whose process on this machine has ended. */
const ABANDONED_MS = 1_000;
/** Milliseconds between two looks for runs of another version of a graph. */
const CHANGED_MS = 30_000;
/** Running runs whose owners are checked at once. */
const OWNERS_CHECKED = 1_000;
const PROBLEM_BACKOFF = { firstMs: 500, maxMs: 10_000 };

/** Starts a worker. It runs until `close`. */
export function worker(options: WorkerOptions): Worker {
  const settings = workerSettings(options);
  const { store, command = null, folder = null, inboxes = [] } = options;
  const graphs = options.graphs.map((given): WorkerGraph => ("graph" in given ? given : { graph: given }));
  assertGraphs(graphs, inboxes.length);
  const workerId = newId();
  const owner = newOwner();
  const [afterStep, now] = [new AbortController(), new AbortController()];
  const handOver = { afterStep: afterStep.signal, now: now.signal };
  const due = { announce: 0, abandoned: 0, changed: 0 };
  let wake = () => {};
  let waitsForIdle: (() => void)[] = [];
  let rotation = 0;

  const emit = (event: WorkerEvent) => {
    try {
      options.onEvent?.(event);
    } catch {
      // An observer must not affect the worker.
    }
  };
  const lanes = graphs.map((graph) => workerLane(graph, { store, settings, handOver, owner, emit, onEnd: () => wake() }));
  const countActive = () => lanes.reduce((sum, { active }) => sum + active.size, 0);
  const isDue = (what: keyof typeof due, everyMs: number) => {
    if (Date.now() < due[what]) return false;
    due[what] = Date.now() + everyMs;
    return true;
  };

  /** Looks for work once: claims runs of all graphs in turn until none is left or the worker is full. Returns the number of claimed runs. */
  async function look(): Promise<number> {
    if (isDue("announce", ANNOUNCE_MS / 3)) await announce();
    if (isDue("changed", CHANGED_MS)) await reportChanged();
    let claimed = isDue("abandoned", ABANDONED_MS) ? await takeAbandoned() : 0;
    for (let found = 1; found > 0 && !afterStep.signal.aborted; claimed += found) {
      found = 0;
      rotation++;
      for (let i = 0; i < lanes.length; i++) {
        // Each graph gets a fair share of the free places in turn, so that a long queue of one does not stop the others.
        const free = settings.concurrency - countActive();
        if (free > 0) found += await lanes[(rotation + i) % lanes.length]!.take("queued", Math.ceil(free / (lanes.length - i)));
      }
    }
    return claimed;
  }

  async function takeAbandoned(): Promise<number> {
    let taken = 0;
    for (const lane of lanes) {
      const running = await store.listRuns({ graph: lane.graph, status: "running", limit: OWNERS_CHECKED });
      const owners = new Set(running.flatMap(({ leaseOwner }) => leaseOwner ?? []));
      const ended = [...owners].filter(hasEnded);
      const free = settings.concurrency - countActive();
      if (free > 0 && running.length > 0) taken += await lane.take("abandoned", free, ended);
    }
    return taken;
  }

  async function announce(): Promise<void> {
    for (const { graph } of graphs) await storeShape(store, graph.definition);
    const listens = graphs.map(({ graph: { name, fingerprint } }) => ({ graph: name, fingerprint }));
    await store.announce({ workerId, owner, graphs: listens, command, folder }, ANNOUNCE_MS);
  }

  async function reportChanged(): Promise<void> {
    for (const graph of new Set(lanes.map((lane) => lane.graph))) {
      const waiting = await store.listRuns({ graph, status: "queued", limit: 100 });
      const answered = await store.listRuns({ graph, status: "answered", limit: 100 });
      const known = lanes.filter((lane) => lane.graph === graph).map(({ fingerprint }) => fingerprint);
      const runIds = [...waiting, ...answered].filter(({ fingerprint }) => !known.includes(fingerprint)).map(({ runId }) => runId);
      if (runIds.length > 0) emit({ type: "graph_changed", graph, runIds });
    }
  }

  async function listen(): Promise<void> {
    for (let problems = 0; !afterStep.signal.aborted; ) {
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      let waitMs = settings.pollMs * (0.5 + Math.random());
      try {
        const claimed = await look();
        problems = 0;
        if (claimed === 0 && countActive() === 0) {
          for (const resolve of waitsForIdle) resolve();
          waitsForIdle = [];
        }
      } catch (error) {
        emit({ type: "problem", error });
        waitMs = retryDelayMs(PROBLEM_BACKOFF, ++problems);
      }
      const stopWaiting = new AbortController();
      await Promise.race([woken, sleep(waitMs, undefined, { signal: stopWaiting.signal }).catch(() => {})]);
      stopWaiting.abort();
    }
  }

  const listening = lanes.length > 0 ? listen() : Promise.resolve();
  const draining = inboxes.map((inbox) => drainInbox(inbox, { pollMs: settings.pollMs, stop: afterStep.signal, now: now.signal, emit }));
  let closing: Promise<void> | undefined;

  async function stop(): Promise<void> {
    afterStep.abort();
    wake();
    const grace = setTimeout(() => now.abort(), settings.graceMs);
    await listening;
    await Promise.all([...lanes.flatMap(({ active }) => [...active]), ...draining.map(({ ended }) => ended)]);
    clearTimeout(grace);
    if (lanes.length > 0) await store.withdraw(workerId).catch((error) => emit({ type: "problem", error }));
    for (const resolve of waitsForIdle) resolve();
  }

  return {
    workerId,
    get active() {
      return countActive();
    },
    async idle() {
      const runs = lanes.length === 0 ? undefined : new Promise<void>((resolve) => waitsForIdle.push(resolve));
      await Promise.all([runs, ...draining.map(({ idle }) => idle())]);
    },
    close() {
      closing ??= stop();
      return closing;
    },
  };
}

function assertGraphs(graphs: readonly WorkerGraph[], inboxes: number): void {
  if (graphs.length + inboxes === 0) throw new CairnError("invalid_input", "A worker needs a graph or an inbox.");
  const names = new Set<string>();
  for (const one of graphs) {
    const { graph } = one;
    const key = `${graph.name} ${graph.fingerprint}`;
    if (names.has(key)) throw new CairnError("invalid_input", `The graph ${JSON.stringify(graph.name)} is given twice.`);
    names.add(key);
    assertGraphLimits(one);
  }
}
