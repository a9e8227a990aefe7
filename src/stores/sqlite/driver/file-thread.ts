import { runInThread, type ThreadCall } from "../../../scheduling/run-in-thread.ts";
import type { FileFacts } from "../backup/copy-file.ts";
import type { FailedProbe, FileProbe, ProbeTime } from "./probe-file.ts";

export type FileTask =
  /** Copies a database that may be in use, and verifies the copy. */
  | { readonly kind: "copy"; readonly from: string; readonly path: string }
  /** Reads the whole of a file that no process writes. */
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

/** Runs the task in a thread. An error keeps the codes of SQLite and of the system. */
export function inFileThread<Task extends FileTask>(task: Task, call?: ThreadCall): Promise<Result<Task>> {
  return runInThread<Result<Task>>("stores/sqlite/driver/file-worker.js", task, call);
}
