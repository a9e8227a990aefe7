import { workerData } from "node:worker_threads";
import { CairnError } from "../../../model/errors.ts";
import { postResult } from "../../../scheduling/run-in-thread.ts";
import { openSqlite } from "../driver/driver.ts";
import { checkWholeFile } from "./check-records.ts";
import { projectSchema } from "./project-schema.ts";
import { repairRecords } from "./repair-records.ts";

/** A thread of its own, because a repair reads the whole file and may write every derived row of it again. */
const { path, now } = workerData as { path: string; now: string };
await postResult(async () => {
  const found = await checkWholeFile(path);
  if (found.problems.length > 0)
    throw new CairnError("conflict", `The file ${path} is damaged itself (${found.problems[0]}). Restore a backup first.`, {
      details: { path },
    });
  if (found.damaged.length + found.stale.length === 0) return { quarantined: [], rebuilt: [] };
  const database = await openSqlite({ path, schema: projectSchema, mustExist: true });
  try {
    return await database.write((tx) => repairRecords(tx, found, now));
  } finally {
    database.close();
  }
});
