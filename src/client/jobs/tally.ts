import type { FileOutcome } from "../../model/index-job.ts";
import { redactMessage } from "../../text/redact-message.ts";
import type { SkipReason } from "../files/walk.ts";
import type { Job, JobState } from "./job.ts";

/** Counts what a pass does, for whoever watches it. */
export interface Tally {
  phase(name: string, file?: string): void;
  /** How many files the walk has met so far. */
  looked(files: number): void;
  /** How many there are. */
  total(files: number): void;
  done(path: string, status: FileOutcome["status"], chunks?: number, bytes?: number): void;
  /** Left out by the walk: not among the files. */
  skipped(reason: SkipReason, path: string): void;
  /** Left out after it was read. */
  skippedFile(reason: SkipReason, path: string): void;
  /** Deleted since the walk. */
  vanished(): void;
  /** `counted`: it is one of the files that the walk gave. */
  failed(file: Job["failed_files"][number], counted: boolean): void;
  removed(what: { readonly removed: number; readonly renamed: number }): void;
  state(): JobState;
}

/** More failed files than this are counted and not named. */
const FAILED_NAMED = 100;
/** So many of each reason are named: enough to see what sort of files they are. */
const SKIPPED_NAMED = 5;
/** The rate of the last while says more about what is left than that of the whole job. */
const RATE_WINDOW_MS = 10_000;

export function tally(nowMs: () => number = Date.now): Tally {
  let phase = "starting";
  let file: string | undefined;
  let total = 0;
  let processed = 0;
  const counts = { indexed: 0, unchanged: 0, renamed: 0, removed: 0, failed: 0, chunks: 0, bytes: 0 };
  const skipped: Record<string, number> = {};
  const skippedFiles: Job["skipped_files"] = [];
  const failed: Job["failed_files"] = [];
  /** The begin of the window before this one, so that there is always a whole one to reckon with. */
  let earlier = { at: nowMs(), processed: 0 };
  let window = earlier;

  function etaSeconds(): number | undefined {
    const at = nowMs();
    if (at - window.at > RATE_WINDOW_MS) {
      earlier = window;
      window = { at, processed };
    }
    const since = processed - earlier.processed;
    if (total === 0 || since <= 0 || at <= earlier.at) return undefined;
    return Math.ceil(((total - processed) * (at - earlier.at)) / since / 1_000);
  }
  const skip = (reason: SkipReason, path: string) => {
    const count = (skipped[reason] ?? 0) + 1;
    skipped[reason] = count;
    // What the project's own rules leave out surprises nobody.
    if (reason !== "ignored" && count <= SKIPPED_NAMED) skippedFiles.push({ path, reason });
  };
  return {
    phase(name, at) {
      phase = name;
      file = at;
    },
    looked(files) {
      total = files;
    },
    total(files) {
      total = files;
      earlier = window = { at: nowMs(), processed: 0 };
    },
    done(_path, status, chunks = 0, bytes = 0) {
      processed++;
      if (status === "indexed" || status === "unchanged" || status === "renamed") counts[status]++;
      counts.chunks += chunks;
      counts.bytes += bytes;
    },
    skipped: skip,
    skippedFile(reason, path) {
      processed++;
      skip(reason, path);
    },
    vanished() {
      processed++;
    },
    failed(one, counted) {
      if (counted) processed++;
      counts.failed++;
      if (failed.length < FAILED_NAMED) failed.push({ ...one, reason: redactMessage(one.reason) });
    },
    removed({ removed, renamed }) {
      counts.removed += removed;
      counts.renamed += renamed;
    },
    state() {
      const eta = phase === "walking" ? undefined : etaSeconds();
      return {
        phase,
        ...(file !== undefined && { current_file: file }),
        files_processed: processed,
        files_total: total,
        ...(eta !== undefined && { eta_seconds: eta }),
        counts: { ...counts },
        skipped: { ...skipped },
        skipped_files: [...skippedFiles],
        failed_files: [...failed],
      };
    },
  };
}
