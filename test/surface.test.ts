import { describe, expect, it } from "vitest";
import * as library from "../src/index.ts";

describe("the public surface", () => {
  it("exports exactly these names", () => {
    expect(Object.keys(library).sort()).toEqual(["CairnError", "open"]);
  });
});
