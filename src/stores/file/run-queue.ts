import type { Clock } from "../../model/ids.ts";
import type { NewRunCheckpoint, Run, RunCheckpointInfo } from "../../model/run.ts";
import { longestWaitingFirst, mayClaim, withClaim, withRequeue } from "../../model/run-queue-rules.ts";
import { addMs, newRecord, runExistsError, runNotFoundError, withCheckpoint } from "../../model/run-rules.ts";
import type { ClaimedRun, RunQueue } from "../../ports/run-queue.ts";
import { type Payload, packState } from "../rows/run-payload.ts";
import type { Entry } from "./entries.ts";

/** An entry to publish, and what the call returns then. */
export interface Step<T> {
  readonly entry: Omit<Entry, "number">;
  readonly body: Uint8Array;
  readonly result: T;
}

/** Publishes the entry that `next` derives from the newest one. Repeats with a newer one if another process was faster. */
export type Advance = <T>(runId: string, fresh: boolean, next: (top: Entry | undefined, at: string) => Promise<Step<T>>) => Promise<T>;

interface FileRunQueueDeps {
  readonly advance: Advance;
  readonly runs: () => AsyncIterable<Run>;
  readonly startStep: (
    checkpoint: NewRunCheckpoint,
    payload: Payload,
    run: Run,
    top: Entry | undefined,
    at: string,
  ) => Step<RunCheckpointInfo>;
  readonly now: Clock;
}

const NO_BYTES = new Uint8Array(0);

/** The queue of runs. A claim reads every run, so that this store suits some hundreds of runs. */
export function fileRunQueue({ advance, runs, startStep, now }: FileRunQueueDeps): RunQueue {
  return {
    async enqueue({ runId, graph, fingerprint, project = null, parent = null, delayMs = 0, first }) {
      const checkpoint = { ...first, runId };
      const payload = await packState(checkpoint);
      return advance(runId, true, async (top, at) => {
        if (top && !top.deleted) throw runExistsError(runId);
        const before = { ...currentOrNewRun(top, runId, at), graph, fingerprint, project, parent };
        const run = { ...withCheckpoint(before, runId, "queued", at), readyAt: addMs(at, delayMs) };
        return { ...startStep(checkpoint, payload, run, top, at), result: run };
      });
    },

    requeue: (runId, options) =>
      advance(runId, true, async (top, at) => {
        if (!top || top.deleted) throw runNotFoundError(runId);
        const run = withRequeue(top.run, options, at);
        return { entry: { ...top, run, checkpoint: undefined }, body: NO_BYTES, result: run };
      }),

    async claim(query) {
      const at = now();
      const found: Run[] = [];
      for await (const run of runs()) if (mayClaim(run, query, at)) found.push(run);
      const claimed: ClaimedRun[] = [];
      for (const { runId } of found.sort(longestWaitingFirst)) {
        if (claimed.length === query.limit) break;
        const taken = await advance(runId, true, async (top, at) => {
          // Another process may have claimed or deleted it since: that is no error.
          if (!top || top.deleted || !mayClaim(top.run, query, at)) throw new NotClaimable();
          const until = addMs(at, query.leaseMs);
          const run = withClaim(top.run, query.owner, until, at);
          const lease = { runId, owner: query.owner, fence: run.fence, until };
          const result = { lease, status: top.run.status, claims: run.claims };
          return { entry: { ...top, run, checkpoint: undefined }, body: NO_BYTES, result };
        }).catch((error) => {
          if (error instanceof NotClaimable) return undefined;
          throw error;
        });
        if (taken) claimed.push(taken);
      }
      return claimed;
    },
  };
}

/** Ends `advance` without publishing. */
class NotClaimable extends Error {}

/** Returns the run's record to continue from; a deleted run starts again and its numbers continue. */
export function currentOrNewRun(top: Entry | undefined, runId: string, at: string): Run {
  if (top && !top.deleted) return top.run;
  return { ...newRecord(runId, at), lastSequence: top?.run.lastSequence ?? 0, fence: top?.run.fence ?? 0 };
}
