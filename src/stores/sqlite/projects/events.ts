import type { ProjectEvents } from "../../../ports/event-log.ts";
import type { DatabaseHandle } from "../driver/databases.ts";
import { fileMark, sqliteEventLog } from "../driver/event-log.ts";

/** Returns the events of the project in this file, whose code index is another one. */
export function sqliteProjectEvents(path: string, codePath: string, database: DatabaseHandle): ProjectEvents {
  return { ...sqliteEventLog(path, database), codeMark: async () => fileMark(codePath) };
}
