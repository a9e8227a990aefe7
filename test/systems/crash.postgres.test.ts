import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { killedAtEveryPoint } from "./crash-checks.ts";
import { soak } from "./places.ts";

describe("a process killed with kill -9, its system on PostgreSQL", () => {
  let place: TestDatabase;
  beforeAll(async () => {
    place = await testDatabase();
  });
  afterAll(() => place.drop());

  it("at every write point loses nothing, doubles nothing, and never shows half a snapshot", {
    timeout: soak ? 3_600_000 : 1_800_000,
  }, async () => {
    let systems = 0;
    const next = () => ({ storage: { storage: "postgres", url: place.url, poolMax: 3 }, systemId: `shop-${systems++}` }) as const;
    const deaths = await killedAtEveryPoint(next, soak ? 1 : 5);
    expect(deaths).toBeGreaterThan(soak ? 100 : 20);
  });
});
