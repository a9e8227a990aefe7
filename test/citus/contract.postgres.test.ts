import { afterAll, beforeAll, describe, it } from "vitest";
import { systemClock } from "../../src/model/ids.ts";
import type { Storage } from "../../src/ports/storage.ts";
import { postgresStorage } from "../../src/stores/postgres/storage.ts";
import { storageContract } from "../../src/testing/index.ts";
import { type CitusDatabase, citusDatabase, citusUrl } from "../setup/citus.ts";

describe.skipIf(!citusUrl)("Citus storage", () => {
  let database: CitusDatabase;
  let storage: Storage;
  const open = () => postgresStorage({ url: database.url, now: systemClock });

  beforeAll(async () => {
    database = await citusDatabase();
    storage = open();
  });
  afterAll(async () => {
    await storage.close();
    await database.drop();
  });

  for (const { name, run } of storageContract({ storage: () => storage, openAgain: open })) it(name, run);
});
