import { existsSync } from "node:fs";
import type { Worker } from "node:worker_threads";
import { CairnError } from "../../../model/errors.ts";
import { startThread } from "../../../scheduling/run-in-thread.ts";
import { unit } from "./collection.ts";
import type { FromWorker, ScanAnswer, ScanRequest, ToWorker } from "./protocol.ts";
import type { RepairReport } from "./rebuild.ts";
import type { VectorHit } from "./search.ts";

export interface VectorSearch {
  readonly collection: string;
  readonly versionId: number;
  readonly query: Float32Array;
  readonly limit: number;
  /** Restricts the search to these keys, in any order. Absent: all keys. Empty: no hits. */
  readonly allow?: Int32Array | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Finds the nearest vectors of a file in a separate thread. Sees every commit that any process made before the call. */
export interface VectorSearcher {
  /** Returns hits, best first. A missing version or file has no vectors. */
  search(search: VectorSearch): Promise<readonly VectorHit[]>;
  /** Builds the IVF lists of a large collection now instead of in the background. */
  buildLists(collection: string, versionId: number): Promise<void>;
  close(): void;
}

export interface VectorSearcherOptions {
  readonly path: string;
  /** From this many vectors on, a search without a filter scans only the lists near the query. */
  readonly listsAbove?: number;
  /** Called when damaged codes were rebuilt. */
  readonly onRepair?: ((report: RepairReport) => void) | undefined;
}

/** Below this number of vectors, a full scan costs at most 5 ms of CPU at 384 dimensions. */
const LISTS_ABOVE = 100_000;
/** 500 records in up to 16 pieces each. */
const SEARCH_LIMIT_MAX = 8_000;
/** Takes 48 MB for the time of the search. */
const FILTER_MAX = 4_000_000;

export function vectorSearcher({ path, listsAbove = LISTS_ABOVE, onRepair }: VectorSearcherOptions): VectorSearcher {
  return {
    async search({ collection, versionId, query, limit, allow, signal }) {
      if (!Number.isInteger(limit) || limit < 1 || limit > SEARCH_LIMIT_MAX)
        throw new CairnError("invalid_input", `A search returns 1 to ${SEARCH_LIMIT_MAX} vectors, not ${limit}.`);
      // Copied below: a message carries the whole buffer of a view, however large.
      const vector = unit("the query", query, query.length);
      if (allow && allow.length > FILTER_MAX)
        throw new CairnError("too_large", `A filter holds at most ${FILTER_MAX} keys, not ${allow.length}.`);
      if (allow?.length === 0 || !existsSync(path)) return [];
      const task = { kind: "search", vector: vector.slice(), limit, allow: allow && sortUnique(allow) } as const;
      const { hits, repair } = await scanThread.ask({ path, collection, versionId, listsAbove, task }, signal);
      if (repair) onRepair?.(repair);
      return hits;
    },
    async buildLists(collection, versionId) {
      await scanThread.ask({ path, collection, versionId, listsAbove, task: { kind: "buildLists" } });
    },
    close() {
      scanThread.close(path);
    },
  };
}

/** Returns a copy, ascending and without duplicates. */
function sortUnique(keys: Int32Array): Int32Array {
  let sorted = true;
  for (let i = 1; i < keys.length && sorted; i++) sorted = keys[i - 1]! < keys[i]!;
  return sorted ? keys.slice() : Int32Array.from(new Set(keys.toSorted()));
}

/** The scan thread of this process: the first request starts it, and it does not keep the process alive. */
const scanThread = {
  async ask(request: ScanRequest, signal?: AbortSignal): Promise<ScanAnswer> {
    signal?.throwIfAborted();
    if (waiting.length >= WAITING_MAX)
      throw new CairnError("unavailable", `${WAITING_MAX} searches are waiting already. Try again in a moment.`, { retryAfterMs: 1_000 });
    let onAbort = () => {};
    try {
      return await new Promise<ScanAnswer>((resolve, reject) => {
        const job: Job = { request, resolve, reject, retried: false };
        onAbort = () => cancel(job, signal?.reason);
        signal?.addEventListener("abort", onAbort);
        waiting.push(job);
        pump();
      });
    } finally {
      signal?.removeEventListener("abort", onAbort);
    }
  },

  /** Closes the thread's connection to a file and forgets its codes. */
  close(path: string): void {
    worker?.postMessage({ close: path } satisfies ToWorker);
  },
};

interface Job {
  readonly request: ScanRequest;
  readonly resolve: (answer: ScanAnswer) => void;
  readonly reject: (error: unknown) => void;
  retried: boolean;
}

const WAITING_MAX = 1_000;
/** Requests sent to the thread at a time: two keep it busy while the others can still be cancelled. */
const AT_WORK_MAX = 2;
/** Milliseconds without a request after which the thread frees its memory. */
const IDLE_MS = 5 * 60_000;

/** Heap limit in MB: without one, the engine collects the little garbage of searches too late. */
const YOUNG_MB = 8;

let worker: Worker | undefined;
let idle: NodeJS.Timeout | undefined;
let lastId = 0;
const waiting: Job[] = [];
const atWork = new Map<number, Job>();

function pump(): void {
  while (waiting.length > 0 && atWork.size < AT_WORK_MAX) {
    const job = waiting.shift()!;
    const id = ++lastId;
    atWork.set(id, job);
    worker ??= start();
    worker.ref();
    worker.postMessage({ id, request: job.request } satisfies ToWorker);
  }
  clearTimeout(idle);
  if (atWork.size > 0) return;
  worker?.unref();
  idle = setTimeout(() => worker?.postMessage({ release: true } satisfies ToWorker), IDLE_MS);
  idle.unref();
}

/** Answers a running request at once and discards the later result of the thread. */
function cancel(job: Job, reason: unknown): void {
  const index = waiting.indexOf(job);
  if (index >= 0) waiting.splice(index, 1);
  job.reject(reason);
}

function start(): Worker {
  const started = startThread("stores/sqlite/vectors/worker.js", { resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB } });
  started.on("message", (message: FromWorker) => {
    const job = atWork.get(message.id);
    atWork.delete(message.id);
    if ("answer" in message) job?.resolve(message.answer);
    else
      job?.reject(
        new CairnError(message.error.code, message.error.message, message.error.details ? { details: message.error.details } : {}),
      );
    pump();
  });
  let cause: unknown;
  started.on("error", (error) => {
    cause = error;
  });
  started.on("exit", () => {
    if (worker === started) worker = undefined;
    const interrupted = [...atWork.values()];
    atWork.clear();
    for (const job of interrupted) {
      // A search changes nothing, so it is retried once. A second failure is caused by the search itself.
      if (job.retried) job.reject(new CairnError("unavailable", "The search thread ended unexpectedly. Try again.", { cause }));
      else waiting.unshift(Object.assign(job, { retried: true }));
    }
    pump();
  });
  return started;
}
