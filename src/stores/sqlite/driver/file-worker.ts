import { workerData } from "node:worker_threads";
import { postResult } from "../../../scheduling/run-in-thread.ts";
import { copyDatabase, countFile, inspectFile } from "../backup/copy-file.ts";
import type { FileTask } from "./file-thread.ts";
import { probeFiles } from "./probe-file.ts";

/**
 * A thread of its own, because copying and reading a database takes as long as the database is large; and because what was opened here
 * is closed for good when the thread ends, whatever the engine keeps.
 */
await postResult<unknown>((reportProgress) => perform(workerData as FileTask, reportProgress));

function perform(task: FileTask, reportProgress: (done: number, total: number) => void) {
  if (task.kind === "count") return countFile(task.path);
  if (task.kind === "inspect") return inspectFile(task.path);
  if (task.kind === "probe") return probeFiles(task.paths, task);
  return copyDatabase(task.from, task.path, reportProgress);
}
