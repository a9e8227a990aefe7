import { describe, expect, it } from "vitest";
import { killedAtEveryPoint } from "./crash-checks.ts";
import { soak, sqlitePlaces } from "./places.ts";

const places = sqlitePlaces();

describe("a process killed with kill -9, its system on SQLite", () => {
  it("at every write point loses nothing, doubles nothing, and never shows half a snapshot", {
    timeout: soak ? 3_600_000 : 1_800_000,
  }, async () => {
    const deaths = await killedAtEveryPoint(() => ({ storage: places(), systemId: "shop" }), soak ? 1 : 2);
    expect(deaths).toBeGreaterThan(soak ? 80 : 40);
  });
});
