import * as nodeFiles from "node:fs/promises";
import { join } from "node:path";
import { CairnError } from "../../model/errors.ts";
import { type Clock, sha256Hex, systemClock } from "../../model/ids.ts";
import type { NewRunCheckpoint, Run, RunCheckpoint, RunCheckpointInfo } from "../../model/run.ts";
import { withRelease } from "../../model/run-queue-rules.ts";
import * as rules from "../../model/run-rules.ts";
import type { RunStore } from "../../ports/run-store.ts";
import { type Payload, packState, payloadBytes, unpackState } from "../rows/run-payload.ts";
import { type Entry, type EntryLog, entryLog, type FileOps, ifMissing } from "./entries.ts";
import { type Advance, currentOrNewRun, fileRunQueue, type Step } from "./run-queue.ts";
import { fileGraphCatalog, fileWorkerRegistry } from "./run-workers.ts";

export interface FileRunStoreOptions {
  readonly folder: string;
  readonly now?: Clock;
  readonly files?: FileOps;
}

const LEFTOVER_MS = 3_600_000;
const NO_BYTES = new Uint8Array(0);

/** Runs as plain files, one folder each. Several processes may share them; hard links must be possible there. */
export function fileRunStore({ folder, now = systemClock, files = nodeFiles }: FileRunStoreOptions): RunStore {
  const runFolders = new Map<string, RunFolder>();
  let closed = false;

  function getRunFolder(runId: string): RunFolder {
    if (closed) throw new CairnError("unavailable", `The run store in ${folder} was closed. Open it again.`);
    let known = runFolders.get(runId);
    if (!known) {
      if (runFolders.size >= RUN_FOLDERS_MAX) for (const [id, { busy }] of runFolders) if (!busy) runFolders.delete(id);
      const hash = sha256Hex(runId);
      known = { log: entryLog(join(folder, hash.slice(0, 2), hash), files), busy: 0, turn: Promise.resolve(), top: undefined };
      runFolders.set(runId, known);
    }
    return known;
  }

  /** Publishes the entry that `next` derives from the newest one. Repeats with a newer one if another process was faster. */
  const advance: Advance = (runId, fresh, next) => {
    const runFolder = getRunFolder(runId);
    runFolder.busy++;
    const work = runFolder.turn.then(async () => {
      if (fresh || !runFolder.top) runFolder.top = await newest(runFolder.log);
      for (;;) {
        const top = runFolder.top;
        const { entry, body, result } = await next(top && (await withRenewal(runFolder.log, top, fresh ? undefined : now())), now());
        runFolder.top = undefined; // if publishing fails, the state is unknown
        const published = { ...entry, number: (top?.number ?? 0) + 1 };
        if (await runFolder.log.publish(published, body)) {
          runFolder.top = published;
          return result;
        }
        runFolder.top = await newest(runFolder.log);
      }
    });
    runFolder.turn = work.then(
      () => {},
      () => {},
    );
    return work.finally(() => runFolder.busy--);
  };

  const current = async (runId: string): Promise<{ log: EntryLog; top: Entry | undefined }> => {
    const { log } = getRunFolder(runId);
    const top = await newest(log);
    return { log, top: top && !top.deleted ? await withRenewal(log, top) : undefined };
  };

  /** Yields the current checkpoints, newest first, and reads them lazily. */
  async function* checkpoints(runId: string): AsyncGenerator<Entry & { checkpoint: NonNullable<Entry["checkpoint"]> }> {
    const { log, top } = await current(runId);
    if (!top) return;
    for (const number of await log.numbers()) {
      if (number < top.since || number > top.number) continue;
      const entry = await log.read(number);
      if (!entry?.checkpoint) continue;
      rules.assertKnownVersion(entry.checkpoint.version, runId);
      yield entry as Entry & { checkpoint: NonNullable<Entry["checkpoint"]> };
    }
  }

  async function find(runId: string, which: string | number, wanted: (info: RunCheckpointInfo) => boolean): Promise<RunCheckpoint> {
    for await (const { number, checkpoint } of checkpoints(runId)) {
      if (!wanted(checkpoint)) continue;
      const data = await getRunFolder(runId).log.body(number);
      return { ...infoOf(checkpoint), state: await unpackState({ data, encoding: checkpoint.encoding, size: checkpoint.size }) };
    }
    throw rules.checkpointNotFoundError(runId, which);
  }

  async function markDeleted(runId: string): Promise<void> {
    const before = await advance(runId, true, async (top) => ({
      entry: { run: { ...top!.run, fence: top!.run.fence + 1, leaseOwner: null, leaseUntil: null }, deleted: true, since: top!.number + 1 },
      body: NO_BYTES,
      result: top!.number,
    }));
    const { log } = getRunFolder(runId);
    for (const number of await log.numbers()) if (number <= before) await log.remove(number);
    await log.removeLeftovers(LEFTOVER_MS);
  }

  return {
    async save(checkpoint, { fence, status, expectedSequence } = {}) {
      const payload = await packState(checkpoint);
      return advance(checkpoint.runId, fence === undefined, async (top, at) => {
        const known = top?.deleted ? undefined : top?.run;
        rules.assertMayWrite(known, checkpoint.runId, fence, at);
        if (fence === undefined) rules.assertUnchanged(known, checkpoint.runId, expectedSequence);
        const run = rules.withCheckpoint(currentOrNewRun(top, checkpoint.runId, at), checkpoint.runId, status, at);
        return checkpointStep(checkpoint, payload, run, top, at);
      });
    },

    load: (runId, nodeId) => find(runId, nodeId, (info) => info.nodeId === nodeId),
    loadAt: (runId, sequence) => find(runId, sequence, (info) => info.sequence === sequence),

    async list(runId) {
      const newestOf = new Map<string, RunCheckpointInfo>();
      for await (const { checkpoint } of checkpoints(runId))
        if (!newestOf.has(checkpoint.nodeId)) newestOf.set(checkpoint.nodeId, infoOf(checkpoint));
      return [...newestOf.values()].reverse();
    },

    async history(runId, { before = Number.POSITIVE_INFINITY, limit = Number.POSITIVE_INFINITY } = {}) {
      const found: RunCheckpointInfo[] = [];
      if (limit <= 0) return found;
      for await (const { checkpoint } of checkpoints(runId)) {
        if (checkpoint.sequence < before) found.push(infoOf(checkpoint));
        if (found.length >= limit) break;
      }
      return found;
    },

    async delete(runId, nodeId) {
      const gone: number[] = [];
      for await (const { number, checkpoint } of checkpoints(runId)) if (checkpoint.nodeId === nodeId) gone.push(number);
      if (gone.length === 0) return;
      // An entry without a checkpoint on top keeps the run's numbers when its newest one goes.
      await advance(runId, true, async (top) => ({ entry: { ...top!, checkpoint: undefined }, body: NO_BYTES, result: undefined }));
      for (const number of gone) await getRunFolder(runId).log.remove(number);
    },

    async deleteRun(runId) {
      if ((await current(runId)).top) await markDeleted(runId);
    },

    getRun: async (runId) => (await current(runId)).top?.run,

    async listRuns(query = {}) {
      const at = now();
      const found: Run[] = [];
      for await (const run of allRuns(folder, files)) if (rules.matchesRun(run, query, at)) found.push(run);
      return found.sort(rules.newestRunFirst).slice(0, query.limit);
    },

    async prune({ runId, signal, batch: _, ...options }) {
      rules.assertPruneRule(options);
      const report = { checkpoints: 0, runs: 0, bytes: 0 };
      const one = runId === undefined ? undefined : (await current(runId)).top?.run;
      for await (const run of runId === undefined ? allRuns(folder, files) : one ? [one] : []) {
        signal?.throwIfAborted();
        const entries: (Entry & { checkpoint: NonNullable<Entry["checkpoint"]> })[] = [];
        for await (const entry of checkpoints(run.runId)) entries.push(entry);
        const gone = rules.selectPrunable(
          run,
          entries.map(({ checkpoint }) => checkpoint),
          options,
        );
        const { log } = getRunFolder(run.runId);
        if (gone === "run") {
          await markDeleted(run.runId);
          report.runs++;
        }
        const sequences = gone === "run" ? undefined : new Set(gone);
        for (const { number, checkpoint } of entries) {
          if (sequences && !sequences.has(checkpoint.sequence)) continue;
          signal?.throwIfAborted();
          await log.remove(number);
          report.checkpoints++;
          report.bytes += checkpoint.stored;
        }
        await log.removeLeftovers(LEFTOVER_MS);
      }
      return report;
    },

    async start({ runId, graph, fingerprint, project = null, parent = null, owner, leaseMs, first }) {
      const checkpoint = { ...first, runId };
      const payload = await packState(checkpoint);
      return advance(runId, true, async (top, at) => {
        if (top && !top.deleted) throw rules.runExistsError(runId);
        const until = rules.addMs(at, leaseMs);
        const held = rules.withLease(currentOrNewRun(top, runId, at), owner, until, at);
        const run = rules.withCheckpoint({ ...held, graph, fingerprint, project, parent }, runId, undefined, at);
        const step = checkpointStep(checkpoint, payload, run, top, at);
        return { ...step, result: { runId, owner, fence: run.fence, until } };
      });
    },

    async acquire(runId, { owner, leaseMs, fingerprint, expected, endedOwner }) {
      return advance(runId, true, async (top, at) => {
        if (!top || top.deleted) throw rules.runNotFoundError(runId);
        const until = rules.addMs(at, leaseMs);
        const run = {
          ...rules.withLease(top.run, owner, until, at, { expected, endedOwner }),
          fingerprint: fingerprint ?? top.run.fingerprint,
        };
        const result = { runId, owner, fence: run.fence, until };
        return { entry: { ...top, run, checkpoint: undefined }, body: NO_BYTES, result };
      });
    },

    async renew(lease, leaseMs) {
      const at = now();
      const { log, top } = await current(lease.runId);
      rules.assertHeld(top?.run, lease, at);
      const until = rules.addMs(at, leaseMs);
      await log.renew(lease.fence, until);
      // If another process took over between the check and the write, its higher token stands.
      rules.assertHeld((await current(lease.runId)).top?.run, lease, at);
      return { ...lease, until };
    },

    async release(lease, { status, note = null }) {
      await advance(lease.runId, true, async (top, at) => {
        const held = top?.deleted ? undefined : top?.run;
        rules.assertHeld(held, lease, at);
        const run = withRelease(held, status, note, at);
        return { entry: { ...top!, run, checkpoint: undefined }, body: NO_BYTES, result: undefined };
      });
      await getRunFolder(lease.runId).log.forgetLease(lease.fence);
    },

    ...fileRunQueue({ advance, runs: () => allRuns(folder, files), startStep: checkpointStep, now }),
    ...fileGraphCatalog(join(folder, "graphs"), now),
    ...fileWorkerRegistry(join(folder, "workers"), now),

    async close() {
      await Promise.all([...runFolders.values()].map(({ turn }) => turn));
      closed = true;
      runFolders.clear();
    },
  };
}

/** The folder of one run, with the queue of this process's calls. */
interface RunFolder {
  readonly log: EntryLog;
  busy: number;
  turn: Promise<void>;
  /** The newest entry that this process knows. If another process has published a newer one, publishing fails and it is read again. */
  top: Entry | undefined;
}

/** Maximum number of cached folders. Above it, idle ones are evicted. */
const RUN_FOLDERS_MAX = 10_000;

/** Returns the newest complete entry. Skips torn entries above it, but does not reuse their numbers. */
async function newest(log: EntryLog): Promise<Entry | undefined> {
  const numbers = await log.numbers();
  for (const [torn, number] of numbers.entries()) {
    const entry = await log.read(number);
    if (!entry) continue;
    if (torn === 0) return entry;
    const run = { ...entry.run, lastSequence: entry.run.lastSequence + torn, fence: entry.run.fence + torn };
    return { ...entry, run, number: numbers[0]! };
  }
  return undefined;
}

async function withRenewal(log: EntryLog, top: Entry, unlessAfter?: string): Promise<Entry> {
  const { run } = top;
  if (run.leaseUntil === null) return top;
  // The holder too reads its renewals from this file, but only after its first lease has expired.
  if (unlessAfter !== undefined && run.leaseUntil > unlessAfter) return top;
  const renewed = await log.renewedUntil(run.fence);
  return renewed && renewed > run.leaseUntil ? { ...top, run: { ...run, leaseUntil: renewed } } : top;
}

function checkpointStep(
  checkpoint: NewRunCheckpoint,
  payload: Payload,
  run: Run,
  top: Entry | undefined,
  at: string,
): Step<RunCheckpointInfo> {
  const info = rules.checkpointInfo(checkpoint, run.lastSequence, at, payload.size);
  const body = payloadBytes(payload.data);
  const since = top && !top.deleted ? top.since : (top?.number ?? 0) + 1;
  return {
    entry: { run, deleted: false, since, checkpoint: { ...info, encoding: payload.encoding, stored: body.byteLength } },
    body,
    result: info,
  };
}

function infoOf({ encoding: _, stored: __, ...info }: NonNullable<Entry["checkpoint"]>): RunCheckpointInfo {
  return info;
}

async function* allRuns(folder: string, files: FileOps): AsyncGenerator<Run> {
  for (const group of (await files.readdir(folder).catch(ifMissing([] as string[]))).sort()) {
    if (!/^[0-9a-f]{2}$/.test(group)) continue;
    for (const name of (await files.readdir(join(folder, group))).sort()) {
      const log = entryLog(join(folder, group, name), files);
      const top = await newest(log);
      if (top && !top.deleted) yield (await withRenewal(log, top)).run;
    }
  }
}
