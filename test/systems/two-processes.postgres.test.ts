import { afterAll, beforeAll, describe, it } from "vitest";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { fedByThree } from "./feeding.ts";
import { soak } from "./places.ts";

describe("several processes on one system in PostgreSQL", () => {
  let place: TestDatabase;
  beforeAll(async () => {
    place = await testDatabase();
  });
  afterAll(() => place.drop());

  it("take every message once, also when one of them is killed", { timeout: soak ? 3_600_000 : 1_800_000 }, async () => {
    const storage = { storage: "postgres", url: place.url, poolMax: 3 } as const;
    for (let round = 0; round < (soak ? 20 : 1); round++) await fedByThree(storage, `shop-${round}`, 300);
  });
});
