import { randomUUID } from "node:crypto";
import { type PostgresDatabase, quoteName } from "../driver/driver.ts";

/**
 * Grants lanes to one process at a time by rows with an expiry. They need no session, so they work through a transaction pooler. The
 * holder renews its rows; the lanes of a killed process are free when its leases expire.
 */
export interface LaneLeases {
  /** Tries to take the lane. Returns false if this or another process holds it, or without a connection. */
  take(lane: string): Promise<boolean>;
  release(lane: string): Promise<void>;
  close(): Promise<void>;
}

export const LANE_LEASES_SQL = `
    CREATE TABLE lane_leases (
      lane text PRIMARY KEY,
      owner uuid NOT NULL,
      held_until timestamptz NOT NULL
    );`;

export interface LaneLeaseOptions {
  readonly database: PostgresDatabase;
  /** The PostgreSQL schema of the table. */
  readonly schema: string;
  readonly leaseMs: number;
  /** Called when a lease was not renewed in time: another process may hold the lane. */
  readonly onLoss: (lane: string) => void;
}

export function laneLeases({ database, schema, leaseMs, onLoss }: LaneLeaseOptions): LaneLeases {
  const table = `${quoteName(schema)}.lane_leases`;
  const owner = randomUUID();
  /** Until when each lane is certainly held, by this process's monotonic clock. */
  const held = new Map<string, { until: number }>();
  let renewing: Promise<void> | undefined;
  const timer = setInterval(renewAll, leaseMs / 3);
  timer.unref();

  function renewAll(): void {
    if (held.size > 0) renewing ??= renew().finally(() => (renewing = undefined));
    for (const [lane, { until }] of held) if (performance.now() >= until) lose(lane);
  }

  async function renew(): Promise<void> {
    const until = performance.now() + leaseMs;
    const leases = [...held];
    const renewed = await database
      .statement<{ lane: string }>(
        `UPDATE ${table} SET held_until = clock_timestamp() + $3 * interval '1 millisecond' WHERE owner = $1 AND lane = ANY($2) RETURNING lane`,
        [owner, leases.map(([lane]) => lane), leaseMs],
        { idempotent: true },
      )
      .catch(() => undefined); // tried again; the lanes are lost when their time has passed
    if (!renewed) return;
    const kept = new Set(renewed.map(({ lane }) => lane));
    for (const [lane, lease] of leases) {
      if (held.get(lane) !== lease) continue; // released meanwhile, and perhaps taken again
      if (kept.has(lane)) lease.until = until;
      else lose(lane);
    }
  }

  function lose(lane: string): void {
    if (held.delete(lane)) onLoss(lane);
  }

  return {
    async take(lane) {
      if (held.has(lane)) return false;
      const until = performance.now() + leaseMs;
      const [taken] = await database
        .statement<{ lane: string }>(
          `INSERT INTO ${table} AS l (lane, owner, held_until) VALUES ($1, $2, clock_timestamp() + $3 * interval '1 millisecond')
           ON CONFLICT (lane) DO UPDATE SET owner = excluded.owner, held_until = excluded.held_until
           WHERE l.held_until <= clock_timestamp() OR l.owner = excluded.owner RETURNING lane`,
          [lane, owner, leaseMs],
          { idempotent: true },
        )
        .catch(() => []);
      if (!taken || performance.now() >= until) return false;
      held.set(lane, { until });
      return true;
    },
    async release(lane) {
      if (!held.delete(lane)) return;
      await database.statement(`DELETE FROM ${table} WHERE lane = $1 AND owner = $2`, [lane, owner], { idempotent: true }).catch(() => {});
    },
    async close() {
      clearInterval(timer);
      await renewing;
      await Promise.all([...held.keys()].map((lane) => this.release(lane)));
    },
  };
}
