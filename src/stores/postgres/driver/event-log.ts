import { EVENTS_KEPT, EVENTS_STAY, EVENTS_TRIM } from "../../../model/event.ts";
import type { EventLog } from "../../../ports/event-log.ts";
import { type EventRow, toEvent } from "../../rows/event-row.ts";
import { type PgValue, quoteName } from "./driver.ts";
import { toTimestamp } from "./time.ts";

/**
 * The log of changes, written by triggers in the transaction of the change. It has no text of records. Transactions commit in another
 * order than that of the sequence, so readers order by transaction and stop at the oldest one of this database that is open.
 */
export const EVENTS_TABLE = `
CREATE TABLE events (
  sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  transaction xid8 NOT NULL DEFAULT pg_current_xact_id(),
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  kind text NOT NULL,
  action text NOT NULL,
  id text COLLATE "C" NOT NULL,
  project text,
  status text,
  run_sequence bigint
);
CREATE INDEX events_order ON events (transaction, sequence);
-- The oldest transaction that may still write an event: of those open in the snapshot, the first that is not known to run in another
-- database of the server. One that has ended since the snapshot counts as open until the next read. A function, so that Citus runs it
-- where the events are.
CREATE FUNCTION event_horizon() RETURNS xid8 LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  RETURN coalesce(
    (SELECT x FROM pg_snapshot_xip(pg_current_snapshot()) AS x
      WHERE NOT EXISTS (SELECT 1 FROM pg_stat_activity a WHERE a.backend_xid = x::xid AND a.datname <> current_database())
      ORDER BY x LIMIT 1),
    pg_snapshot_xmax(pg_current_snapshot()));
END $$;
-- The lower bound spares the scan over rows that were deleted and not vacuumed yet.
CREATE FUNCTION trim_events() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  DELETE FROM events WHERE sequence IN
    (SELECT sequence FROM events WHERE sequence <= NEW.sequence - ${EVENTS_KEPT} AND sequence > NEW.sequence - ${EVENTS_KEPT} - ${16 * EVENTS_TRIM}
      FOR UPDATE SKIP LOCKED);
  RETURN NULL;
END $$;
CREATE TRIGGER events_trimmed AFTER INSERT ON events FOR EACH ROW WHEN (NEW.sequence % ${EVENTS_TRIM} = 0) EXECUTE FUNCTION trim_events();
`;

interface Row extends Omit<EventRow, "sequence"> {
  readonly transaction: string;
  /** As text: sequences of a Citus worker exceed the safe integers. */
  readonly sequence: string;
}

interface Bounds {
  readonly horizon: string;
  readonly xmax: string;
  readonly oldest: string | null;
  readonly newest: string | null;
  readonly pending: boolean;
}

export interface EventQueries {
  /** Runs one statement that reads; `events` in it is the name of the table. */
  ask<Row>(sql: string, params: readonly PgValue[]): Promise<Row[]>;
  /** Runs one statement that may happen twice. */
  change(sql: string, params: readonly PgValue[]): Promise<number>;
  /** The schema of the table, where statements need it. */
  readonly schema?: string;
}

/** Returns the log of one schema. Positions are `<transaction>.<sequence>`. */
export function postgresEventLog({ ask, change, schema }: EventQueries): EventLog {
  const prefix = schema === undefined ? "" : `${quoteName(schema)}.`;
  const table = `${prefix}events`;
  // A transaction that this server has not begun is of another server, from which the log was moved or restored.
  const bounds = `SELECT h.horizon, pg_snapshot_xmax(pg_current_snapshot())::text AS xmax,
    (SELECT min(sequence) FROM ${table})::text AS oldest, (SELECT max(sequence) FROM ${table})::text AS newest,
    EXISTS (SELECT 1 FROM ${table} WHERE transaction >= h.horizon AND transaction < pg_snapshot_xmax(pg_current_snapshot())) AS pending FROM (SELECT ${prefix}event_horizon() AS horizon) h`;
  const columns =
    "e.sequence::text AS sequence, e.transaction::text AS transaction, e.at, e.kind, e.action, e.id, e.project, e.status, e.run_sequence";

  return {
    async head() {
      const [found] = await ask<Bounds>(bounds, []);
      return `${BigInt(found!.horizon) - 1n}.${found!.newest ?? 0}`;
    },

    async positionAt(time) {
      const sql = `SELECT e.transaction::text AS transaction, e.sequence::text AS sequence FROM ${table} e WHERE e.at < $1 ORDER BY e.transaction DESC, e.sequence DESC LIMIT 1`;
      const [row] = await ask<Row>(sql, [toTimestamp(time)]);
      return row ? `${row.transaction}.${row.sequence}` : "0.0";
    },

    async readAfter(position, limit) {
      const parts = /^(\d{1,19})\.(\d{1,19})$/.exec(position);
      const [transaction, sequence] = [parts?.[1] ?? "0", parts?.[2] ?? "0"];
      // One statement, so that the bounds and the events are of one snapshot.
      const rows = await ask<Bounds & (Row | Record<keyof Row, null>)>(
        `SELECT b.*, e.* FROM (${bounds}) b LEFT JOIN LATERAL
           (SELECT ${columns} FROM ${table} e WHERE e.transaction < b.horizon AND (e.transaction, e.sequence) > ($1::text::xid8, $2::bigint)
             ORDER BY e.transaction, e.sequence LIMIT $3) e ON true`,
        [transaction, sequence, limit],
      );
      const { oldest, newest, xmax, pending } = rows[0]!;
      const isTrimmed = oldest !== null && isTrimmedAfter(BigInt(sequence), BigInt(oldest), BigInt(newest!));
      const isExpired = parts === null || isTrimmed || BigInt(transaction) >= BigInt(xmax);
      const events = rows
        .filter((row): row is Bounds & Row => row.sequence !== null)
        .map((row) => toEvent(row, `${row.transaction}.${row.sequence}`));
      return { events: isExpired ? [] : events, isExpired, isPending: pending };
    },

    changeMark: async () => undefined,

    prune: (before) =>
      change(`DELETE FROM ${table} WHERE at < $1 AND sequence <= (SELECT max(sequence) FROM ${table}) - ${EVENTS_STAY}`, [
        toTimestamp(before),
      ]),
  };
}

/** Sequences of a Citus worker begin at its number times 2^48. */
const WORKER_BITS = 48n;
const STAY = BigInt(EVENTS_STAY);

/**
 * Returns whether events after this sequence may have been deleted. Deletion leaves `EVENTS_STAY` events, so a shorter log is complete:
 * the numbers that it lacks are of transactions that are open or failed. The order by transaction and the order by sequence differ by
 * less than half of that.
 */
function isTrimmedAfter(sequence: bigint, oldest: bigint, newest: bigint): boolean {
  if (newest - oldest < STAY - 1n) return false;
  const start = (oldest >> WORKER_BITS) << WORKER_BITS;
  const deleted = oldest - start - 1n;
  return (sequence < start ? start : sequence) < oldest - 1n + (deleted < STAY / 2n ? deleted : STAY / 2n);
}
