import { setTimeout as sleep } from "node:timers/promises";
import { asCairnError } from "../model/errors.ts";
import type { IndexJobStatus, IndexResult, IndexWork } from "../model/index-job.ts";
import { isAbandoned } from "../model/migration.ts";
import type { PerformIndexWork } from "../ports/index-queue.ts";
import { withoutTimeLimit } from "../scheduling/time-limit.ts";
import { redactMessage } from "../text/redact-message.ts";

/** A database that others hold, or that restarts, is tried again so often: for some ten seconds. */
const ATTEMPTS = 6;

/** Work in the background: nobody waits for it, so what only needs time is tried again, and every other trouble becomes its outcome. */
export function patiently(
  perform: (work: IndexWork, signal: AbortSignal) => Promise<IndexResult>,
  { retryDelayMs = 200 }: { readonly retryDelayMs?: number } = {},
): PerformIndexWork {
  const attempts: PerformIndexWork = async (work, signal) => {
    for (let attempt = 1; ; attempt++)
      try {
        const result = await perform(work, signal);
        return { status: statusOf(result), result };
      } catch (error) {
        if (signal.aborted) return { status: "cancelled" };
        const { code, message } = asCairnError(error);
        if (code !== "unavailable" || isAbandoned(error) || attempt === ATTEMPTS)
          return { status: "failed", reason: redactMessage(message) };
        await sleep(retryDelayMs * 2 ** (attempt - 1), undefined, { signal }).catch(() => {}); // cancelled: the next attempt sees it
      }
  };
  return (work, signal) => withoutTimeLimit(() => attempts(work, signal));
}

/** What a job's files came to, in one word. */
function statusOf({ files }: IndexResult): IndexJobStatus {
  if (!files.some(({ status }) => status === "failed" || status === "partial")) return "completed";
  return files.every(({ status }) => status === "failed") ? "failed" : "partial";
}
