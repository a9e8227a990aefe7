import { describe, expect, it } from "vitest";
import * as http from "../src/http/index.ts";
import * as library from "../src/index.ts";
import * as systems from "../src/systems.ts";
import * as testing from "../src/testing/index.ts";

describe("the public surface", () => {
  it("exports exactly these names", () => {
    expect(Object.keys(library).sort()).toEqual(["CairnError", "open"]);
  });

  it("exports exactly these names for people who serve HTTP themselves", () => {
    expect(Object.keys(http).sort()).toEqual(["HTTP_STATUS", "httpHandler", "openApi"]);
  });

  it("exports exactly these names for systems", () => {
    expect(Object.keys(systems).sort()).toEqual(["CairnError", "openSystemStorage", "system"]);
  });

  it("exports exactly these contracts to people who write a store", () => {
    expect(Object.keys(testing).sort()).toEqual(["runStoreContract", "storageContract", "systemStorageContract"]);
  });
});
