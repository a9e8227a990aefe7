import { workerData } from "node:worker_threads";
import { postResult } from "../../../scheduling/run-in-thread.ts";
import { loadEngine } from "../driver/engine.ts";
import { findProblems } from "../driver/find-problems.ts";

/**
 * Copies a database as it is at one moment, also while others write to it, and reads the copy through. A damaged one is not
 * copied: the copy might look sound, because damaged indexes are rebuilt in it.
 */
const { from, to, withoutDeleted } = workerData as { readonly from: string; readonly to: string; readonly withoutDeleted: boolean };
await postResult(async () => {
  const { problems } = await findProblems(from);
  if (problems.length > 0) return problems;
  const { DatabaseSync } = await loadEngine();
  const connection = new DatabaseSync(from, { readOnly: true, timeout: 5_000 });
  try {
    connection.prepare("VACUUM INTO ?").run(to);
  } finally {
    connection.close();
  }
  if (withoutDeleted) {
    const copy = new DatabaseSync(to);
    try {
      copy.exec("PRAGMA secure_delete = ON; DELETE FROM deleted_records; VACUUM");
    } finally {
      copy.close();
    }
  }
  return (await findProblems(to)).problems;
});
