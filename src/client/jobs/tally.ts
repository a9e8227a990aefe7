import type { FileOutcome } from "../../model/index-job.ts";
import { redactMessage } from "../../text/redact-message.ts";
import type { SkipReason } from "../files/walk.ts";
import type { Job, JobState } from "./job.ts";

/** Counts what a job does, for its progress report. */
export interface Tally {
  phase(name: string, file?: string): void;
  /** Sets how many files the walk has found so far. */
  walked(files: number): void;
  /** Sets how many files there are. */
  total(files: number): void;
  done(status: FileOutcome["status"], chunks?: number, bytes?: number): void;
  /** Counts an entry that the walk excluded. It is not one of the files. */
  skipped(reason: SkipReason, path: string, detail?: string): void;
  /** Counts a file that was excluded after it was read. */
  skippedFile(reason: SkipReason, path: string, detail?: string): void;
  /** Counts a file that was deleted after the walk. */
  vanished(): void;
  /** `isWalked`: the walk returned it as a file. */
  failed(file: Job["failedFiles"][number], isWalked: boolean): void;
  /** Counts files that the index removed. A renamed file was counted as indexed when it was sent, and is counted once. */
  removed(result: { readonly removed: number; readonly renamed: number }): void;
  state(): JobState;
}

/** Failed files that a job names; it counts all of them. */
const FAILED_NAMED = 100;
/** Skipped entries that a job names for each reason; it counts all of them. */
const SKIPPED_NAMED = 100;
/** Milliseconds of the window whose rate the ETA is computed from: recent files predict the rest better than the whole job. */
const RATE_WINDOW_MS = 10_000;

export function tally(nowMs: () => number = Date.now): Tally {
  let phase = "starting";
  let currentFile: string | undefined;
  let total = 0;
  let processed = 0;
  const counts = { indexed: 0, unchanged: 0, renamed: 0, removed: 0, failed: 0, chunks: 0, bytes: 0 };
  const skipped: Record<string, number> = {};
  const skippedFiles: Job["skippedFiles"] = [];
  const failedFiles: Job["failedFiles"] = [];
  /** The start of the previous window, so that the rate always covers at least one whole window. */
  let previous = { at: nowMs(), processed: 0 };
  let window = previous;

  function etaSeconds(): number | undefined {
    const at = nowMs();
    if (at - window.at > RATE_WINDOW_MS) {
      previous = window;
      window = { at, processed };
    }
    const since = processed - previous.processed;
    if (processed >= total || since <= 0 || at <= previous.at) return undefined;
    return Math.ceil(((total - processed) * (at - previous.at)) / since / 1_000);
  }
  const skip = (reason: SkipReason, path: string, detail?: string) => {
    const count = (skipped[reason] ?? 0) + 1;
    skipped[reason] = count;
    if (count <= SKIPPED_NAMED) skippedFiles.push({ path, reason, ...(detail !== undefined && { detail }) });
  };
  return {
    phase(name, file) {
      phase = name;
      currentFile = file;
    },
    walked(files) {
      total = files;
    },
    total(files) {
      total = files;
      previous = window = { at: nowMs(), processed: 0 };
    },
    done(status, chunks = 0, bytes = 0) {
      processed++;
      if (status === "indexed" || status === "unchanged" || status === "renamed") counts[status]++;
      counts.chunks += chunks;
      counts.bytes += bytes;
    },
    skipped: skip,
    skippedFile(reason, path, detail) {
      processed++;
      skip(reason, path, detail);
    },
    vanished() {
      processed++;
    },
    failed(file, isWalked) {
      if (isWalked) processed++;
      counts.failed++;
      if (failedFiles.length < FAILED_NAMED) failedFiles.push({ ...file, reason: redactMessage(file.reason) });
    },
    removed({ removed, renamed }) {
      counts.removed += removed;
      counts.renamed += renamed;
      counts.indexed = Math.max(0, counts.indexed - renamed);
    },
    state() {
      const eta = phase === "walking" ? undefined : etaSeconds();
      return {
        phase,
        ...(currentFile !== undefined && { currentFile }),
        filesProcessed: processed,
        filesTotal: total,
        ...(eta !== undefined && { etaSeconds: eta }),
        counts: { ...counts },
        skipped: { ...skipped },
        skippedFiles: [...skippedFiles],
        failedFiles: [...failedFiles],
      };
    },
  };
}
