import { asCairnError } from "../model/errors.ts";
import type { IndexJobStatus, IndexResult, IndexWork } from "../model/index-job.ts";
import { isAbandoned } from "../model/migration.ts";
import type { PerformIndexWork } from "../ports/index-queue.ts";
import { withoutTimeLimit } from "../scheduling/calls.ts";
import { retry } from "../scheduling/retry.ts";
import { redactMessage } from "../text/redact-message.ts";

/** Limits the attempts on a database that is locked or restarts: about ten seconds in all. */
const ATTEMPTS = 6;
const LONGEST_DELAY_MS = 10_000;

/** Returns index work that repeats what fails as `unavailable`. Any other error becomes the outcome, because no caller waits for it. */
export function retryIndexWork(
  perform: (work: IndexWork, signal: AbortSignal) => Promise<IndexResult>,
  { retryDelayMs = 200 }: { readonly retryDelayMs?: number } = {},
): PerformIndexWork {
  const backoff = { firstMs: retryDelayMs, maxMs: LONGEST_DELAY_MS };
  const isRetryable = (error: unknown) => asCairnError(error).code === "unavailable" && !isAbandoned(error);
  const attempts: PerformIndexWork = async (work, signal) => {
    try {
      const result = await retry(() => perform(work, signal), { backoff, isRetryable, attempts: ATTEMPTS, signal });
      return { status: statusOf(result), result };
    } catch (error) {
      return signal.aborted ? { status: "cancelled" } : { status: "failed", reason: redactMessage(asCairnError(error).message) };
    }
  };
  return (work, signal) => withoutTimeLimit(() => attempts(work, signal));
}

/** Returns the status of a job from the outcomes of its files. */
function statusOf({ files }: IndexResult): IndexJobStatus {
  if (!files.some(({ status }) => status === "failed" || status === "partial")) return "completed";
  return files.every(({ status }) => status === "failed") ? "failed" : "partial";
}
