import { type Clock, systemClock } from "../../model/ids.ts";
import type { NewRunCheckpoint, RunCheckpoint, RunCheckpointInfo, RunStatus } from "../../model/run.ts";
import * as queueRules from "../../model/run-queue-rules.ts";
import * as rules from "../../model/run-rules.ts";
import type { RunStore } from "../../ports/run-store.ts";
import { type Payload, packState, unpackState } from "../rows/run-payload.ts";
import { type MemoryEventLog, memoryEventLog } from "./event-log.ts";
import { ObservedRun } from "./observed-run.ts";
import { memoryGraphCatalog, memoryWorkerRegistry } from "./run-workers.ts";

interface Entry {
  readonly info: RunCheckpointInfo;
  readonly payload: Payload;
}

/** A run with its entries. A deleted run keeps its record, so that its sequence numbers are not reused. */
type RunState = ObservedRun<Entry>;

/** Runs that live as long as the process: for tests and short-lived work. */
export function memoryRunStore({ now = systemClock }: { readonly now?: Clock } = {}): RunStore {
  const runs = new Map<string, RunState>();
  const events = memoryEventLog();
  const currentRun = (runId: string): RunState | undefined => {
    const state = runs.get(runId);
    return state?.deleted ? undefined : state;
  };

  function append(checkpoint: NewRunCheckpoint, payload: Payload, status: RunStatus | undefined, at: string): RunCheckpointInfo {
    const state = getOrCreateRun(runs, events, checkpoint.runId, at);
    state.run = rules.withCheckpoint(state.run, checkpoint.runId, status, at);
    const entry: Entry = {
      info: rules.checkpointInfo(checkpoint, state.run.lastSequence, at, payload.size),
      payload: payload.encoding === "raw" ? { ...payload, data: new Uint8Array(payload.data as Uint8Array) } : payload,
    };
    state.entries.push(entry);
    state.byNode.set(checkpoint.nodeId, entry);
    return entry.info;
  }

  return {
    events,

    async save(checkpoint, { fence, status, expectedSequence } = {}) {
      const packed = packState(checkpoint);
      const payload = packed instanceof Promise ? await packed : packed;
      const at = now();
      const run = currentRun(checkpoint.runId)?.run;
      rules.assertMayWrite(run, checkpoint.runId, fence, at);
      if (fence === undefined) rules.assertUnchanged(run, checkpoint.runId, expectedSequence);
      return append(checkpoint, payload, status, at);
    },

    async load(runId, nodeId) {
      const entry = currentRun(runId)?.byNode.get(nodeId);
      if (!entry) throw rules.checkpointNotFoundError(runId, nodeId);
      return withState(entry);
    },

    async loadAt(runId, sequence) {
      const entry = currentRun(runId)?.entries.find(({ info }) => info.sequence === sequence);
      if (!entry) throw rules.checkpointNotFoundError(runId, sequence);
      return withState(entry);
    },

    async list(runId) {
      const newest = [...(currentRun(runId)?.byNode.values() ?? [])].map(({ info }) => info);
      return newest.sort((a, b) => a.sequence - b.sequence);
    },

    async history(runId, { before = Number.POSITIVE_INFINITY, limit = Number.POSITIVE_INFINITY } = {}) {
      const found: RunCheckpointInfo[] = [];
      const entries = currentRun(runId)?.entries ?? [];
      for (let i = entries.length - 1; i >= 0 && found.length < limit; i--)
        if (entries[i]!.info.sequence < before) found.push(entries[i]!.info);
      return found;
    },

    async delete(runId, nodeId) {
      const state = currentRun(runId);
      if (state) keepEntries(state, ({ info }) => info.nodeId !== nodeId);
    },

    async deleteRun(runId) {
      const state = currentRun(runId);
      if (state) markDeleted(state);
    },

    getRun: async (runId) => currentRun(runId)?.run,

    async listRuns(query = {}) {
      const at = now();
      const matching = [...runs.values()].filter((state) => !state.deleted && rules.matchesRun(state.run, query, at)).map(({ run }) => run);
      return matching.sort(rules.newestRunFirst).slice(0, query.limit);
    },

    async prune({ runId, signal, ...options }) {
      rules.assertPruneRule(options);
      const report = { checkpoints: 0, runs: 0, bytes: 0 };
      const count = (entries: readonly Entry[]) => {
        report.checkpoints += entries.length;
        for (const { payload } of entries) report.bytes += typeof payload.data === "string" ? payload.size : payload.data.byteLength;
      };
      for (const state of runId === undefined ? runs.values() : [currentRun(runId)]) {
        signal?.throwIfAborted();
        if (!state || state.deleted) continue;
        const gone = rules.selectPrunable(state.run, state.entries.map(({ info }) => info).reverse(), options);
        if (gone === "run") {
          count(state.entries);
          report.runs++;
          markDeleted(state);
        } else if (gone.length > 0) {
          const sequences = new Set(gone);
          count(state.entries.filter(({ info }) => sequences.has(info.sequence)));
          keepEntries(state, ({ info }) => !sequences.has(info.sequence));
        }
      }
      return report;
    },

    async start({ runId, graph, fingerprint, project = null, parent = null, owner, leaseMs, first }) {
      const checkpoint = { ...first, runId };
      const packed = packState(checkpoint);
      const payload = packed instanceof Promise ? await packed : packed;
      if (currentRun(runId)) throw rules.runExistsError(runId);
      const at = now();
      const until = rules.addMs(at, leaseMs);
      const state = getOrCreateRun(runs, events, runId, at);
      state.run = { ...rules.withLease(state.run, owner, until, at), graph, fingerprint, project, parent };
      append(checkpoint, payload, undefined, at);
      return { runId, owner, fence: state.run.fence, until };
    },

    async acquire(runId, { owner, leaseMs, fingerprint, expected, endedOwner }) {
      const state = currentRun(runId);
      if (!state) throw rules.runNotFoundError(runId);
      const at = now();
      const until = rules.addMs(at, leaseMs);
      state.run = {
        ...rules.withLease(state.run, owner, until, at, { expected, endedOwner }),
        fingerprint: fingerprint ?? state.run.fingerprint,
      };
      return { runId, owner, fence: state.run.fence, until };
    },

    async renew(lease, leaseMs) {
      const at = now();
      const state = currentRun(lease.runId);
      rules.assertHeld(state?.run, lease, at);
      const until = rules.addMs(at, leaseMs);
      state!.run = { ...state!.run, leaseUntil: until };
      return { ...lease, until };
    },

    async release(lease, { status, note = null }) {
      const at = now();
      const state = currentRun(lease.runId);
      rules.assertHeld(state?.run, lease, at);
      state!.run = queueRules.withRelease(state!.run, status, note, at);
    },

    async enqueue({ runId, graph, fingerprint, project = null, parent = null, delayMs = 0, first }) {
      const checkpoint = { ...first, runId };
      const payload = await packState(checkpoint);
      if (currentRun(runId)) throw rules.runExistsError(runId);
      const at = now();
      const state = getOrCreateRun(runs, events, runId, at);
      state.run = { ...state.run, graph, fingerprint, project, parent };
      append(checkpoint, payload, "queued", at);
      state.run = { ...state.run, readyAt: rules.addMs(at, delayMs) };
      return state.run;
    },

    async requeue(runId, options) {
      const state = currentRun(runId);
      if (!state) throw rules.runNotFoundError(runId);
      state.run = queueRules.withRequeue(state.run, options, now());
      return state.run;
    },

    async claim(query) {
      const at = now();
      const until = rules.addMs(at, query.leaseMs);
      const found = [...runs.values()].filter(({ run, deleted }) => !deleted && queueRules.mayClaim(run, query, at));
      const claimed = found.sort((a, b) => queueRules.longestWaitingFirst(a.run, b.run)).slice(0, query.limit);
      return claimed.map((state) => {
        const { status } = state.run;
        state.run = queueRules.withClaim(state.run, query.owner, until, at);
        const { runId, fence, claims } = state.run;
        return { lease: { runId, owner: query.owner, fence, until }, status, claims };
      });
    },

    ...memoryGraphCatalog(),
    ...memoryWorkerRegistry(now),

    async close() {
      runs.clear();
    },
  };
}

/** Returns the run's entry, and creates it if needed; a deleted run starts again and its numbers continue. */
function getOrCreateRun(runs: Map<string, RunState>, events: MemoryEventLog, runId: string, at: string): RunState {
  const known = runs.get(runId);
  if (known && !known.deleted) return known;
  const run = { ...rules.newRecord(runId, at), lastSequence: known?.run.lastSequence ?? 0, fence: known?.run.fence ?? 0 };
  const fresh: RunState = new ObservedRun(run, events);
  runs.set(runId, fresh);
  return fresh;
}

function keepEntries(state: RunState, stays: (entry: Entry) => boolean): void {
  state.entries = state.entries.filter(stays);
  state.byNode = new Map(state.entries.map((entry) => [entry.info.nodeId, entry]));
}

function markDeleted(state: RunState): void {
  state.markDeleted();
  keepEntries(state, () => false);
}

async function withState({ info, payload }: Entry): Promise<RunCheckpoint> {
  return { ...info, state: await unpackState(payload) };
}
