import { parentPort, Worker } from "node:worker_threads";
import { builtFile } from "../files/built-file.ts";
import { asCairnError, CairnError, type ErrorCode, type ErrorOptions } from "../model/errors.ts";

/** Runs a worker, named by its path in dist/, in a thread of its own and returns the one message that it posts. */
export async function runInThread<Result>(worker: string, workerData: unknown, signal?: AbortSignal): Promise<Result> {
  signal?.throwIfAborted();
  const thread = new Worker(builtFile(`${worker}`), { workerData, execArgv: [] });
  const stop = () => void thread.terminate();
  signal?.addEventListener("abort", stop, { once: true });
  try {
    return await new Promise<Result>((resolve, reject) => {
      thread.once("message", resolve);
      thread.once("error", reject);
      thread.once("exit", () => reject(signal?.aborted ? signal.reason : new Error(`${worker} ended without a result.`)));
    });
  } finally {
    signal?.removeEventListener("abort", stop);
    await thread.terminate();
  }
}

/** What a thread that may fail with a `CairnError` posts: errors lose their class on the way. */
type Outcome<Result> =
  | { readonly result: Result }
  | { readonly failure: ErrorOptions & { readonly code: ErrorCode; readonly message: string } };

/** Runs the work of a worker and posts its outcome, for `outcomeOfThread`. */
export async function postOutcome<Result>(work: () => Promise<Result>): Promise<void> {
  let outcome: Outcome<Result>;
  try {
    outcome = { result: await work() };
  } catch (error) {
    const { code, message, details, retryAfterMs } = asCairnError(error);
    outcome = { failure: { code, message, ...(details && { details }), ...(retryAfterMs !== undefined && { retryAfterMs }) } };
  }
  parentPort!.postMessage(outcome);
}

/** Runs a worker that posts its outcome; returns the result or raises the error. */
export async function outcomeOfThread<Result>(worker: string, workerData: unknown): Promise<Result> {
  const outcome = await runInThread<Outcome<Result>>(worker, workerData);
  if ("result" in outcome) return outcome.result;
  const { code, message, ...options } = outcome.failure;
  throw new CairnError(code, message, options);
}
