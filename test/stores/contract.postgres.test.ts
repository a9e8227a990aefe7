import { afterAll, beforeAll, describe, it } from "vitest";
import { systemClock } from "../../src/model/ids.ts";
import type { Storage } from "../../src/ports/storage.ts";
import { postgresStorage } from "../../src/stores/postgres/storage.ts";
import { storageContract } from "../../src/testing/index.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";

let database: TestDatabase;
let storage: Storage;
const open = () => postgresStorage({ url: database.url, now: systemClock });

beforeAll(async () => {
  database = await testDatabase();
  storage = open();
});

describe("PostgreSQL storage", () => {
  for (const { name, run } of storageContract({ storage: () => storage, openAgain: open })) it(name, run);
});

afterAll(async () => {
  await storage.close();
  await database.drop();
});
