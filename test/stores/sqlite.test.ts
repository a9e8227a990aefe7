import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, it } from "vitest";
import { systemClock } from "../../src/model/ids.ts";
import { sqliteStorage } from "../../src/stores/sqlite/storage.ts";
import { storageContract } from "../../src/testing/index.ts";

const dataDir = mkdtempSync(join(tmpdir(), "cairn-sqlite-"));
const open = () => sqliteStorage({ dataDir, now: systemClock });
const storage = open();

describe("SQLite storage", () => {
  for (const { name, run } of storageContract({ storage: () => storage, openAgain: open })) it(name, run);
});

afterAll(async () => {
  await storage.close();
  rmSync(dataDir, { recursive: true });
});
