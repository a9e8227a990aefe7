import { Worker } from "node:worker_threads";
import { builtFile } from "../../model/built-file.ts";

/** Runs a worker of this folder in a thread of its own and gives its one message: for work that takes as long as a file is large. */
export async function inThread<Result>(worker: string, workerData: unknown, signal?: AbortSignal): Promise<Result> {
  signal?.throwIfAborted();
  const thread = new Worker(builtFile(`stores/sqlite/${worker}`), { workerData, execArgv: [] });
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
