import fc from "fast-check";
import { afterAll, beforeAll, describe, it } from "vitest";
import { openSystemStorage } from "../../src/systems.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { actions, behavesLikeTheModel } from "./model.ts";
import { soak } from "./places.ts";

describe("a system in PostgreSQL", () => {
  let place: TestDatabase;
  beforeAll(async () => {
    place = await testDatabase();
  });
  afterAll(() => place.drop());

  it("does what the model does, whatever is sent again, out of order or from two processes", {
    timeout: soak ? 3_600_000 : 1_800_000,
  }, async () => {
    const storage = await openSystemStorage({ storage: "postgres", url: place.url, poolMax: 4 });
    let systems = 0;
    const property = fc.asyncProperty(actions, (steps) => behavesLikeTheModel(storage, `shop-${systems++}`, steps));
    await fc.assert(property, { numRuns: soak ? 200 : 6 });
    await storage.close();
  });
});
