import type { SourceFile, VectorOptions } from "../../code/index-batch.ts";
import type { Code, SeedFiles } from "../../code/service.ts";
import { asCairnError, type ErrorCode } from "../../model/errors.ts";
import type { FileOutcome } from "../../model/index-job.ts";
import type { IndexReport } from "../../model/index-report.ts";
import { isAbandoned } from "../../model/migration.ts";
import { retry } from "../../scheduling/retry.ts";

/** The index that a job writes to: the library in this process, or a server. Every call may be repeated. */
export interface IndexTarget {
  /** Returns the content hash of each path that is indexed completely. */
  hashes(paths: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, string>>;
  /** Indexes files and returns an outcome for each, after the index commits them. `hash` is the hash of the content. */
  send(files: readonly SourceFile[], signal: AbortSignal, options?: VectorOptions): Promise<readonly FileOutcome[]>;
  /** Adds the vectors of files that were sent with `vectors: "later"`. Absent for a server, which embeds what it is sent. */
  embedPending?(signal: AbortSignal, progress: (done: number, total: number) => void): Promise<unknown>;
  /** Removes files that are not in the manifest. Returns how many were removed, and how many were renamed instead. */
  finish(manifest: readonly string[], signal: AbortSignal): Promise<{ readonly removed: number; readonly renamed: number }>;
  counts(signal: AbortSignal): Promise<IndexCounts>;
  /** Takes over what another project of the same user has indexed; see `Code.seed`. Absent for a server. */
  seed?(files: SeedFiles): Promise<{ readonly files: number }>;
  /** Reports the job to those who look at the index, and returns whether one of them asked to cancel it. */
  report(report: IndexReport, signal: AbortSignal): Promise<{ readonly cancelRequested: boolean }>;
  /** Batches that may be in progress at once. */
  readonly atOnce: number;
}

export interface IndexCounts {
  readonly files: number;
  readonly chunks: number;
}

/** Batches in progress at once in this process: some are parsed and embedded while others wait for one commit. */
export const EMBEDDED_AT_ONCE = 8;

/** Returns the code service of this process as a target. */
export function embeddedTarget(code: Code, projectPath: string, { reuse = false }: { readonly reuse?: boolean } = {}): IndexTarget {
  return {
    ...(reuse && { seed: (files: SeedFiles) => code.seed({ projectPath, ...files }) }),
    atOnce: EMBEDDED_AT_ONCE,
    async hashes(paths) {
      return new Map(Object.entries(await code.hashes({ projectPath, paths })));
    },
    async send(files, signal, options) {
      return (await code.indexBatch({ projectPath, files }, { signal, trustHashes: true, ...options })).files;
    },
    embedPending: (signal, progress) => code.embedPending({ projectPath }, { signal, progress }),
    async finish(manifest) {
      const { removed, renamed } = await code.finish({ projectPath, manifest });
      return { removed: removed.length, renamed: renamed.length };
    },
    counts: async () => countsOf(await code.stats({ projectPath })),
    report: (report) => code.report({ projectPath, report }),
  };
}

export const countsOf = ({ files, chunks }: IndexCounts): IndexCounts => ({ files, chunks });

export interface TargetRetryOptions {
  /** Milliseconds without any success after which the job gives up. It can be resumed. */
  readonly giveUpAfterMs?: number;
  readonly firstPauseMs?: number;
}

/** Errors that a repetition can cure: a server that restarts, a lock that is held, too many calls. */
const TRANSIENT: ReadonlySet<ErrorCode> = new Set(["unavailable", "rate_limited", "timeout"]);
const GIVE_UP_AFTER_MS = 600_000;
const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5_000;

/** Makes a target repeat calls that fail with a transient error, with exponential back-off. */
export function withRetry(
  target: IndexTarget,
  { giveUpAfterMs = GIVE_UP_AFTER_MS, firstPauseMs = FIRST_PAUSE_MS }: TargetRetryOptions = {},
): IndexTarget {
  let succeededAt = performance.now();

  function repeat<T>(signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    const isRetryable = (error: unknown) =>
      TRANSIENT.has(asCairnError(error).code) && !isAbandoned(error) && performance.now() - succeededAt <= giveUpAfterMs;
    const attempt = async () => {
      const result = await call();
      succeededAt = performance.now();
      return result;
    };
    return retry(attempt, { backoff: { firstMs: firstPauseMs, maxMs: LONGEST_PAUSE_MS }, isRetryable, signal });
  }

  return {
    atOnce: target.atOnce,
    hashes: (paths, signal) => repeat(signal, () => target.hashes(paths, signal)),
    send: (files, signal, options) => repeat(signal, () => target.send(files, signal, options)),
    ...(target.embedPending && {
      embedPending: (signal: AbortSignal, progress: (done: number, total: number) => void) =>
        repeat(signal, () => target.embedPending!(signal, progress)),
    }),
    finish: (manifest, signal) => repeat(signal, () => target.finish(manifest, signal)),
    counts: target.counts, // optional, so a failure is not retried
    report: target.report, // as well
    ...(target.seed && { seed: target.seed }), // as well
  };
}
