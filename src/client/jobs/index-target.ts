import type { SourceFile } from "../../code/index-batch.ts";
import type { Code } from "../../code/service.ts";
import { asCairnError, type ErrorCode } from "../../model/errors.ts";
import type { FileOutcome } from "../../model/index-job.ts";
import { isAbandoned } from "../../model/migration.ts";
import { retry } from "../../scheduling/retry.ts";

/** Where an index goes: the library in this process, or a server. All of it may be repeated. */
export interface IndexTarget {
  /** The content hash of each of these paths that is in the index as it should be. */
  hashes(paths: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, string>>;
  /** Resolves when the files are in the index for good, or when it is known why not. */
  send(files: readonly SourceFile[], signal: AbortSignal): Promise<readonly FileOutcome[]>;
  /** Removes what is not in the manifest; says how many files that were, and how many had only renamed. */
  finish(manifest: readonly string[], signal: AbortSignal): Promise<{ readonly removed: number; readonly renamed: number }>;
  /** What the index holds. */
  counts(signal: AbortSignal): Promise<IndexCounts>;
  /** How many batches may be under way at once. */
  readonly atOnce: number;
}

export interface IndexCounts {
  readonly files: number;
  readonly chunks: number;
}

/** The service in this process, or in this thread. One batch is parsed while another is embedded and stored. */
export function embeddedTarget(code: Code, projectPath: string): IndexTarget {
  return {
    atOnce: 2,
    async hashes(paths) {
      return new Map(Object.entries(await code.hashes({ projectPath, paths })));
    },
    async send(files, signal) {
      return (await code.indexBatch({ projectPath, files }, { signal })).files;
    },
    async finish(manifest) {
      const { removed, renamed } = await code.finish({ projectPath, manifest });
      return { removed: removed.length, renamed: renamed.length };
    },
    counts: async () => countsOf(await code.stats({ projectPath })),
  };
}

export const countsOf = ({ files, chunks }: IndexCounts): IndexCounts => ({ files, chunks });

export interface Patience {
  /** For how long nothing may get through before the job gives up. It can be resumed then. */
  readonly patienceMs?: number;
  readonly firstPauseMs?: number;
}

/** What passes by itself: a server that starts again, a lock that is held, too many calls. */
const PASSING: ReadonlySet<ErrorCode> = new Set(["unavailable", "rate_limited", "timeout"]);
const PATIENCE_MS = 600_000;
const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5_000;

/** Repeats what fails for reasons that pass by themselves, with growing pauses. */
export function patient(target: IndexTarget, { patienceMs = PATIENCE_MS, firstPauseMs = FIRST_PAUSE_MS }: Patience = {}): IndexTarget {
  let succeededAt = performance.now();

  function insist<T>(signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    const isRetryable = (error: unknown) =>
      PASSING.has(asCairnError(error).code) && !isAbandoned(error) && performance.now() - succeededAt <= patienceMs;
    const attempt = async () => {
      const result = await call();
      succeededAt = performance.now();
      return result;
    };
    return retry(attempt, { backoff: { firstMs: firstPauseMs, maxMs: LONGEST_PAUSE_MS }, isRetryable, signal });
  }

  return {
    atOnce: target.atOnce,
    hashes: (paths, signal) => insist(signal, () => target.hashes(paths, signal)),
    send: (files, signal) => insist(signal, () => target.send(files, signal)),
    finish: (manifest, signal) => insist(signal, () => target.finish(manifest, signal)),
    counts: target.counts, // worth no waiting
  };
}
