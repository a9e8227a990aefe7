import type { NewRunCheckpoint, Run, RunCheckpoint, RunCheckpointInfo, RunStatus } from "../../model/run.ts";
import * as rules from "../../model/run-rules.ts";
import { type Clock, systemClock } from "../../ports/clock.ts";
import type { RunStore } from "../../ports/run-store.ts";
import { type Payload, packState, unpackState } from "../rows/run-payload.ts";

interface Entry {
  readonly info: RunCheckpointInfo;
  readonly payload: Payload;
}

/** A run as kept here; a deleted one is only its record, so that its numbers are not used again. */
interface Kept {
  run: Run;
  deleted: boolean;
  entries: Entry[];
  byNode: Map<string, Entry>;
}

/** Runs that live as long as the process: for tests and short-lived work. */
export function memoryRunStore({ now = systemClock }: { readonly now?: Clock } = {}): RunStore {
  const runs = new Map<string, Kept>();
  const living = (runId: string): Kept | undefined => {
    const kept = runs.get(runId);
    return kept?.deleted ? undefined : kept;
  };

  function append(checkpoint: NewRunCheckpoint, payload: Payload, status: RunStatus | undefined, at: string): RunCheckpointInfo {
    const kept = revived(runs, checkpoint.runId, at);
    kept.run = rules.withCheckpoint(kept.run, checkpoint.runId, status, at);
    const entry: Entry = {
      info: rules.checkpointInfo(checkpoint, kept.run.lastSequence, at, payload.size),
      payload: payload.encoding === "raw" ? { ...payload, data: new Uint8Array(payload.data as Uint8Array) } : payload,
    };
    kept.entries.push(entry);
    kept.byNode.set(checkpoint.nodeId, entry);
    return entry.info;
  }

  return {
    async save(checkpoint, { fence, status } = {}) {
      const packed = packState(checkpoint);
      const payload = packed instanceof Promise ? await packed : packed;
      const at = now();
      rules.assertMayWrite(living(checkpoint.runId)?.run, checkpoint.runId, fence, at);
      return append(checkpoint, payload, status, at);
    },

    async load(runId, nodeId) {
      const entry = living(runId)?.byNode.get(nodeId);
      if (!entry) throw rules.checkpointNotFoundError(runId, nodeId);
      return withState(entry);
    },

    async loadAt(runId, sequence) {
      const entry = living(runId)?.entries.find(({ info }) => info.sequence === sequence);
      if (!entry) throw rules.checkpointNotFoundError(runId, sequence);
      return withState(entry);
    },

    async list(runId) {
      const newest = [...(living(runId)?.byNode.values() ?? [])].map(({ info }) => info);
      return newest.sort((a, b) => a.sequence - b.sequence);
    },

    async history(runId, { before = Number.POSITIVE_INFINITY, limit = Number.POSITIVE_INFINITY } = {}) {
      const found: RunCheckpointInfo[] = [];
      const entries = living(runId)?.entries ?? [];
      for (let i = entries.length - 1; i >= 0 && found.length < limit; i--)
        if (entries[i]!.info.sequence < before) found.push(entries[i]!.info);
      return found;
    },

    async delete(runId, nodeId) {
      const kept = living(runId);
      if (kept) keep(kept, ({ info }) => info.nodeId !== nodeId);
    },

    async deleteRun(runId) {
      const kept = living(runId);
      if (kept) bury(kept);
    },

    getRun: async (runId) => living(runId)?.run,

    async listRuns(query = {}) {
      const at = now();
      const matching = [...runs.values()].filter((kept) => !kept.deleted && rules.matchesRun(kept.run, query, at)).map(({ run }) => run);
      return matching.sort(rules.newestRunFirst).slice(0, query.limit);
    },

    async prune({ runId, signal, ...options }) {
      rules.assertPruneRule(options);
      const report = { checkpoints: 0, runs: 0, bytes: 0 };
      const count = (entries: readonly Entry[]) => {
        report.checkpoints += entries.length;
        for (const { payload } of entries) report.bytes += typeof payload.data === "string" ? payload.size : payload.data.byteLength;
      };
      for (const kept of runId === undefined ? runs.values() : [living(runId)]) {
        signal?.throwIfAborted();
        if (!kept || kept.deleted) continue;
        const gone = rules.selectPrunable(kept.run, kept.entries.map(({ info }) => info).reverse(), options);
        if (gone === "run") {
          count(kept.entries);
          report.runs++;
          bury(kept);
        } else if (gone.length > 0) {
          const sequences = new Set(gone);
          count(kept.entries.filter(({ info }) => sequences.has(info.sequence)));
          keep(kept, ({ info }) => !sequences.has(info.sequence));
        }
      }
      return report;
    },

    async start({ runId, graph, fingerprint, project = null, parent = null, owner, leaseMs, first }) {
      const checkpoint = { ...first, runId };
      const packed = packState(checkpoint);
      const payload = packed instanceof Promise ? await packed : packed;
      if (living(runId)) throw rules.runExistsError(runId);
      const at = now();
      const until = rules.addMs(at, leaseMs);
      const kept = revived(runs, runId, at);
      kept.run = { ...rules.withLease(kept.run, owner, until, at), graph, fingerprint, project, parent };
      append(checkpoint, payload, undefined, at);
      return { runId, owner, fence: kept.run.fence, until };
    },

    async acquire(runId, { owner, leaseMs, fingerprint, expected }) {
      const kept = living(runId);
      if (!kept) throw rules.runNotFoundError(runId);
      const at = now();
      const until = rules.addMs(at, leaseMs);
      kept.run = { ...rules.withLease(kept.run, owner, until, at, expected), fingerprint: fingerprint ?? kept.run.fingerprint };
      return { runId, owner, fence: kept.run.fence, until };
    },

    async renew(lease, leaseMs) {
      const at = now();
      const kept = living(lease.runId);
      rules.assertHeld(kept?.run, lease, at);
      const until = rules.addMs(at, leaseMs);
      kept!.run = { ...kept!.run, leaseUntil: until };
      return { ...lease, until };
    },

    async release(lease, { status, note = null }) {
      const at = now();
      const kept = living(lease.runId);
      rules.assertHeld(kept?.run, lease, at);
      kept!.run = { ...kept!.run, status, note, leaseOwner: null, leaseUntil: null, updatedAt: at };
    },

    async close() {
      runs.clear();
    },
  };
}

/** Returns the run's entry, and creates it if needed; a deleted run starts again and its numbers continue. */
function revived(runs: Map<string, Kept>, runId: string, at: string): Kept {
  const known = runs.get(runId);
  if (known && !known.deleted) return known;
  const run = { ...rules.newRecord(runId, at), lastSequence: known?.run.lastSequence ?? 0, fence: known?.run.fence ?? 0 };
  const fresh: Kept = { run, deleted: false, entries: [], byNode: new Map() };
  runs.set(runId, fresh);
  return fresh;
}

function keep(kept: Kept, stays: (entry: Entry) => boolean): void {
  kept.entries = kept.entries.filter(stays);
  kept.byNode = new Map(kept.entries.map((entry) => [entry.info.nodeId, entry]));
}

function bury(kept: Kept): void {
  kept.deleted = true;
  kept.run = { ...kept.run, fence: kept.run.fence + 1 };
  keep(kept, () => false);
}

async function withState({ info, payload }: Entry): Promise<RunCheckpoint> {
  return { ...info, state: await unpackState(payload) };
}
