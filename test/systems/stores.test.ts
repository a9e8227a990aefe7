import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, it } from "vitest";
import { memorySystemStorage } from "../../src/stores/memory/systems.ts";
import { sqliteSystemStorage } from "../../src/stores/sqlite/systems/storage.ts";
import { systemStorageContract } from "../../src/testing/system-store-contract.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-systems-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let folders = 0;

describe("memory", () => {
  for (const { name, run } of systemStorageContract({ open: memorySystemStorage })) it(name, run);
});

describe("SQLite", () => {
  const open = () => sqliteSystemStorage({ stateDir: join(folder, `${folders++}`) });
  for (const { name, run } of systemStorageContract({ open })) it(name, run);
});
