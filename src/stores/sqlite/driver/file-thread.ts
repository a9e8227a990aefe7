import { Worker } from "node:worker_threads";
import { builtFile } from "../../../files/built-file.ts";
import type { FileFacts } from "../backup/copy-file.ts";
import type { FailedProbe, FileProbe, ProbeTime } from "./probe-file.ts";

export type FileTask =
  /** Copies a database that may be in use, and verifies the copy. */
  | { readonly kind: "copy"; readonly from: string; readonly path: string }
  /** Reads all of a file at rest. */
  | { readonly kind: "inspect"; readonly path: string }
  | { readonly kind: "count"; readonly path: string }
  /** Looks at databases that may be in use. */
  | ({ readonly kind: "probe"; readonly paths: readonly string[] } & ProbeTime);

interface Results {
  readonly copy: FileFacts;
  readonly inspect: FileFacts;
  readonly count: ReadonlyMap<string, number>;
  readonly probe: readonly (FileProbe | FailedProbe)[];
}
type Result<Task extends FileTask> = Results[Task["kind"]];

export interface FileCall {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
}

type Message =
  | { readonly done: number; readonly total: number }
  | { readonly result: Results[keyof Results] }
  | { readonly failure: { readonly message: string; readonly code?: string; readonly errcode?: number } };

/** Runs the task in a thread. A failure keeps the codes of SQLite and the system, so that it can be told in words. */
export async function inFileThread<Task extends FileTask>(task: Task, { signal, onProgress }: FileCall = {}): Promise<Result<Task>> {
  signal?.throwIfAborted();
  const worker = new Worker(builtFile("stores/sqlite/driver/file-worker.js"), { workerData: task, execArgv: [] });
  let leave: (() => void) | undefined;
  try {
    return await new Promise<Result<Task>>((resolve, reject) => {
      leave = () => reject(signal!.reason);
      signal?.addEventListener("abort", leave, { once: true });
      worker.on("message", (message: Message) => {
        if ("result" in message) resolve(message.result as Result<Task>);
        else if ("failure" in message) reject(Object.assign(new Error(message.failure.message), message.failure));
        else onProgress?.(message.done, message.total);
      });
      worker.once("error", reject);
      worker.once("exit", () => reject(new Error("The thread ended without a result.")));
    });
  } finally {
    if (leave) signal?.removeEventListener("abort", leave);
    await worker.terminate();
  }
}
