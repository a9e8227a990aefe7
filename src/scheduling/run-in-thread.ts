import { parentPort, type ResourceLimits, Worker } from "node:worker_threads";
import { builtFile } from "../files/built-file.ts";
import { CairnError, type ErrorCode, type ErrorOptions } from "../model/errors.ts";

export interface ThreadOptions {
  readonly workerData?: unknown;
  readonly resourceLimits?: ResourceLimits;
}

/** Starts a worker, named by its path in dist/, in a thread. Tests pass a URL of their own. */
export function startThread(worker: string | URL, options: ThreadOptions = {}): Worker {
  // A thread refuses some flags of the main program, such as --input-type.
  return new Worker(typeof worker === "string" ? builtFile(worker) : worker, { ...options, execArgv: [] });
}

export interface ThreadCall {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
}

/** Runs a worker that answers with `postResult`. Returns its result or raises its error; an abort ends the thread. */
export async function runInThread<Result>(
  worker: string | URL,
  workerData: unknown,
  { signal, onProgress }: ThreadCall = {},
): Promise<Result> {
  signal?.throwIfAborted();
  const thread = startThread(worker, { workerData });
  let abort = () => {};
  try {
    return await new Promise<Result>((resolve, reject) => {
      abort = () => reject(signal?.reason);
      signal?.addEventListener("abort", abort, { once: true });
      thread.on("message", (message: Message<Result>) => {
        if ("result" in message) resolve(message.result);
        else if ("failure" in message) reject(toError(message.failure));
        else onProgress?.(message.done, message.total);
      });
      thread.once("error", reject);
      thread.once("exit", () => reject(new Error(`${worker} ended without a result.`)));
    });
  } finally {
    signal?.removeEventListener("abort", abort);
    await thread.terminate();
  }
}

/**
 * Returns a function that runs orders one after the other in a thread. The thread stays for `idleMs` after the last order, because its
 * start takes longer than a short order. It answers each message with `postResult`, and does not keep the process alive when idle.
 */
export function reuseThread<Order, Result>(worker: string | URL, idleMs: number): (order: Order) => Promise<Result> {
  let thread: Worker | undefined;
  let idle: NodeJS.Timeout | undefined;
  let last: Promise<unknown> = Promise.resolve();

  async function perform(order: Order): Promise<Result> {
    clearTimeout(idle);
    thread ??= startThread(worker).on("error", () => {}); // an idle thread that fails must not end the process
    const used = thread;
    used.ref();
    let forget = () => {};
    try {
      const message = await new Promise<Message<Result>>((resolve, reject) => {
        const onError = (error: unknown) => {
          thread = undefined; // the next order starts another
          reject(error);
        };
        const onExit = () => onError(new Error(`${worker} ended without a result.`));
        forget = () => used.off("message", resolve).off("error", onError).off("exit", onExit);
        used.on("message", resolve).on("error", onError).on("exit", onExit);
        used.postMessage(order);
      });
      if ("result" in message) return message.result;
      throw "failure" in message ? toError(message.failure) : new Error(`${worker} reported progress instead of a result.`);
    } finally {
      forget();
      used.unref();
      idle = setTimeout(() => {
        if (thread === used) thread = undefined;
        void used.terminate();
      }, idleMs).unref();
    }
  }

  return (order) => {
    const result = last.then(() => perform(order));
    last = result.catch(() => {});
    return result;
  };
}

/** Runs the work of a worker and posts its result or its error to `runInThread` or `reuseThread`. */
export async function postResult<Result>(work: (reportProgress: (done: number, total: number) => void) => Promise<Result>): Promise<void> {
  const post = (message: Message<Result>) => parentPort!.postMessage(message);
  try {
    post({ result: await work((done, total) => post({ done, total })) });
  } catch (error) {
    post({ failure: toFailure(error) });
  }
}

/** The result or the error of one of several tasks, as a thread posts it. */
export type Settled<Result> = { readonly result: Result } | { readonly failure: Failure };

/** Waits for several tasks in a thread, each of which succeeds or fails alone. The receiver calls `readSettled`. */
export async function settleAll<Result>(tasks: readonly Promise<Result>[]): Promise<Settled<Result>[]> {
  return Promise.all(
    tasks.map((task) =>
      task.then(
        (result) => ({ result }),
        (error: unknown) => ({ failure: toFailure(error) }),
      ),
    ),
  );
}

/** Returns the result of a task, or raises its error. */
export function readSettled<Result>(settled: Settled<Result>): Result {
  if ("failure" in settled) throw toError(settled.failure);
  return settled.result;
}

type Message<Result> = { readonly result: Result } | { readonly failure: Failure } | { readonly done: number; readonly total: number };

/** Carries an error between threads: a clone loses its class and, for SQLite's errors, the codes. */
type Failure =
  | { readonly cairn: ErrorOptions & { readonly code: ErrorCode; readonly message: string } }
  | { readonly other: { readonly message: string; readonly code?: unknown; readonly errcode?: unknown } };

function toFailure(error: unknown): Failure {
  if (error instanceof CairnError) {
    const { code, message, details, retryAfterMs } = error;
    return { cairn: { code, message, ...(details && { details }), ...(retryAfterMs !== undefined && { retryAfterMs }) } };
  }
  const { message = String(error), code, errcode } = error as Error & { code?: unknown; errcode?: unknown };
  return { other: { message, code, errcode } };
}

function toError(failure: Failure): Error {
  if ("other" in failure) return Object.assign(new Error(failure.other.message), failure.other);
  const { code, message, ...options } = failure.cairn;
  return new CairnError(code, message, options);
}
