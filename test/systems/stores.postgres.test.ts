import { afterAll, beforeAll, describe, it } from "vitest";
import { openPostgres } from "../../src/stores/postgres/driver/driver.ts";
import { postgresSystemStorage } from "../../src/stores/postgres/systems/storage.ts";
import { systemStorageContract } from "../../src/testing/system-store-contract.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";

describe("PostgreSQL", () => {
  let place: TestDatabase;
  beforeAll(async () => {
    place = await testDatabase();
  });
  afterAll(() => place.drop());

  // One database for all cases is quicker; each case finds no system in it.
  const open = async () => {
    const database = openPostgres({ url: place.url, poolMax: 1 });
    await database.write("pg_catalog", async (tx) => {
      const schemas = await tx.all<{ name: string }>("SELECT nspname AS name FROM pg_namespace WHERE nspname LIKE 'system\\_%'");
      for (const { name } of schemas) await tx.exec(`DROP SCHEMA ${name} CASCADE`);
    });
    await database.close();
    return postgresSystemStorage({ url: place.url, poolMax: 4 });
  };
  for (const { name, run } of systemStorageContract({ open })) it(name, run);
});
