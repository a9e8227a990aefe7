import { afterAll } from "vitest";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { transferSuite } from "./transfer.ts";

let database: TestDatabase | undefined;
transferSuite("PostgreSQL", async (dataDir) => {
  database = await testDatabase();
  return { storage: database.url, dataDir };
});
afterAll(() => database?.drop());
