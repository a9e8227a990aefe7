import { statSync } from "node:fs";
import { EVENTS_KEPT, EVENTS_STAY, EVENTS_TRIM } from "../../../model/event.ts";
import type { EventLog } from "../../../ports/event-log.ts";
import { type EventRow, toEvent } from "../../rows/event-row.ts";
import type { DatabaseHandle } from "./databases.ts";

/**
 * The log of changes. Triggers write it in the transaction of the change, whichever process makes it. It has no text of records. The
 * newest row is never deleted, so the sequence only grows without AUTOINCREMENT, whose counter would be one more page per commit.
 */
export const EVENTS_TABLE = `
CREATE TABLE events (
  sequence INTEGER PRIMARY KEY,
  at TIMESTAMP NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  kind TEXT NOT NULL,
  action TEXT NOT NULL,
  id TEXT NOT NULL,
  project TEXT,
  status TEXT,
  run_sequence INTEGER
);
CREATE TRIGGER events_trimmed AFTER INSERT ON events WHEN NEW.sequence % ${EVENTS_TRIM} = 0
BEGIN
  DELETE FROM events WHERE sequence <= NEW.sequence - ${EVENTS_KEPT};
END;
`;

/** Returns the log of this file. One writer at a time: the sequence is the order of the commits. */
export function sqliteEventLog(path: string, database: DatabaseHandle): EventLog {
  return {
    async head() {
      return (await database()).read((tx) => String(tx.get<Bounds>(BOUNDS)!.newest ?? 0));
    },

    async positionAt(time) {
      const sql = "SELECT max(sequence) AS newest FROM events WHERE at < ?";
      return (await database()).read((tx) => String(tx.get<Pick<Bounds, "newest">>(sql, time)!.newest ?? 0));
    },

    async readAfter(position, limit) {
      const after = /^\d{1,15}$/.test(position) ? Number(position) : -1;
      return (await database()).read((tx) => {
        const { oldest, newest } = tx.get<Bounds>(BOUNDS)!;
        const isExpired = after < (oldest ?? 1) - 1 || after > (newest ?? 0);
        const sql =
          "SELECT sequence, at, kind, action, id, project, status, run_sequence FROM events WHERE sequence > ? ORDER BY sequence LIMIT ?";
        const rows = isExpired ? [] : tx.all<EventRow>(sql, after, limit);
        return { events: rows.map((row) => toEvent(row, String(row.sequence))), isExpired, isPending: false };
      });
    },

    changeMark: async () => fileMark(path),

    async prune(before) {
      const sql = `DELETE FROM events WHERE at < ? AND sequence <= (SELECT max(sequence) FROM events) - ${EVENTS_STAY}`;
      return (await database()).write((tx) => tx.run(sql, before).changes);
    },
  };
}

interface Bounds {
  readonly oldest: number | null;
  readonly newest: number | null;
}

const BOUNDS = "SELECT (SELECT min(sequence) FROM events) AS oldest, (SELECT max(sequence) FROM events) AS newest";

/** Describes the times and sizes of a database file and its log: every commit changes one of them. */
export function fileMark(path: string): string {
  return [path, `${path}-wal`]
    .map((file) => {
      const found = statSync(file, { throwIfNoEntry: false });
      return found ? `${found.mtimeMs}:${found.size}` : "-";
    })
    .join(" ");
}
