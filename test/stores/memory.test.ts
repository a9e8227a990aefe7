import { describe, it } from "vitest";
import { memoryStorage } from "../../src/stores/memory/storage.ts";
import { storageContract } from "../../src/testing/index.ts";

describe("memory storage", () => {
  const storage = memoryStorage();
  for (const { name, run } of storageContract({ storage: () => storage, openAgain: "not possible" })) it(name, run);
});
