import { workerData } from "node:worker_threads";
import { postResult } from "../../../scheduling/run-in-thread.ts";
import { copyDatabase, countFile, inspectFile } from "../backup/copy-file.ts";
import type { FileTask } from "./file-thread.ts";
import { probeFiles } from "./probe-file.ts";

/**
 * Runs in a thread, because copying and reading a large database takes long, and because the end of the thread closes its connections
 * with either engine.
 */
await postResult<unknown>((reportProgress) => perform(workerData as FileTask, reportProgress));

function perform(task: FileTask, reportProgress: (done: number, total: number) => void) {
  if (task.kind === "count") return countFile(task.path);
  if (task.kind === "inspect") return inspectFile(task.path);
  if (task.kind === "probe") return probeFiles(task.paths, task);
  return copyDatabase(task.from, task.path, reportProgress);
}
