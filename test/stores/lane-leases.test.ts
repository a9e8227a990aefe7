import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { PostgresDatabase } from "../../src/stores/postgres/driver/driver.ts";
import { laneLeases } from "../../src/stores/postgres/projects/lane-leases.ts";

describe("leases of lanes", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** A database with the rows of the table. The next UPDATE stays under way until `finish` is called. */
  function table() {
    const rows = new Set<string>();
    const updates: (() => void)[] = [];
    const statement = async (sql: string, params: readonly unknown[]) => {
      const [first, second] = params as [string, readonly string[]];
      if (sql.startsWith("INSERT")) return rows.add(first) && [{ lane: first }];
      if (sql.startsWith("DELETE")) return rows.delete(first) ? [] : [];
      const renewed = second.filter((lane) => rows.has(lane)).map((lane) => ({ lane }));
      return new Promise<unknown[]>((resolve) => updates.push(() => resolve(renewed)));
    };
    return { rows, updates, database: { statement } as unknown as PostgresDatabase };
  }

  it("are kept by a lane that was released and taken again during a renewal", async () => {
    const { rows, updates, database } = table();
    const lost: string[] = [];
    const leases = laneLeases({ database, schema: "queue", leaseMs: 3_000, onLoss: (lane) => lost.push(lane) });
    await leases.take("code_a");
    rows.clear(); // the renewal reads the table after the release and before the lane is taken again
    await vi.advanceTimersByTimeAsync(1_000);
    expect(updates).toHaveLength(1);
    await leases.release("code_a");
    expect(await leases.take("code_a")).toBe(true);
    updates[0]!();
    await vi.advanceTimersByTimeAsync(0);
    expect(lost).toEqual([]);
    await leases.close();
  });

  it("are lost when another process has taken the lane, or when they cannot be renewed in time", async () => {
    const { rows, updates, database } = table();
    const lost: string[] = [];
    const leases = laneLeases({ database, schema: "queue", leaseMs: 3_000, onLoss: (lane) => lost.push(lane) });
    await leases.take("code_a");
    await leases.take("code_b");
    rows.delete("code_a");
    await vi.advanceTimersByTimeAsync(1_000);
    updates[0]!();
    await vi.advanceTimersByTimeAsync(0);
    expect(lost).toEqual(["code_a"]);
    await vi.advanceTimersByTimeAsync(3_000); // the next renewal never returns
    expect(lost).toEqual(["code_a", "code_b"]);
    updates[1]!();
    await leases.close();
  });
});
