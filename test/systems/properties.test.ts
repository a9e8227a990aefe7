import fc from "fast-check";
import { describe, it } from "vitest";
import { openSystemStorage, type SystemStorageOptions } from "../../src/systems.ts";
import { actions, behavesLikeTheModel } from "./model.ts";
import { soak, sqlitePlaces } from "./places.ts";

const places = sqlitePlaces();

describe.each<[string, () => SystemStorageOptions, number]>([
  ["memory", () => ({ storage: "memory" }), 60],
  ["SQLite", places, 15],
])("a system in %s", (_, place, runs) => {
  it("does what the model does, whatever is sent again, out of order or from two processes", {
    timeout: soak ? 3_600_000 : 1_800_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(actions, async (steps) => {
        const storage = await openSystemStorage(place());
        await behavesLikeTheModel(storage, "shop", steps);
        await storage.close();
      }),
      { numRuns: soak ? 20 * runs : runs },
    );
  });
});
