import { afterAll } from "vitest";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { mergeSuite } from "./merge.ts";

let database: TestDatabase | undefined;
mergeSuite("PostgreSQL", async (dataDir) => {
  database = await testDatabase();
  return { storage: database.url, dataDir };
});
afterAll(() => database?.drop());
