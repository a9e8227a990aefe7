import { describe, it } from "vitest";
import { fedByThree } from "./feeding.ts";
import { soak, sqlitePlaces } from "./places.ts";

const places = sqlitePlaces();

describe("several processes on one system in SQLite", () => {
  it("take every message once, also when one of them is killed", { timeout: soak ? 3_600_000 : 1_800_000 }, async () => {
    for (let round = 0; round < (soak ? 20 : 1); round++) await fedByThree(places(), "shop", 300);
  });
});
