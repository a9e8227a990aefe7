import { parentPort, workerData } from "node:worker_threads";
import { copyDatabase, countFile, inspectFile } from "./copy-file.ts";
import type { CopyTask } from "./copy-thread.ts";

/** A thread of its own, because copying and reading a database takes as long as the database is large. */
try {
  parentPort!.postMessage({ result: await perform(workerData as CopyTask) });
} catch (error) {
  const { message, code, errcode } = error as Error & { code?: unknown; errcode?: unknown };
  parentPort!.postMessage({ failure: { message, code, errcode } });
}

function perform(task: CopyTask) {
  if (task.kind === "count") return countFile(task.path);
  if (task.kind === "inspect") return inspectFile(task.path);
  return copyDatabase(task.from, task.path, (done, total) => parentPort!.postMessage({ done, total }));
}
