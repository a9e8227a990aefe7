import { afterAll } from "vitest";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { isolationSuite } from "./isolation.ts";

let database: TestDatabase | undefined;
isolationSuite("PostgreSQL", async (dataDir) => {
  database = await testDatabase();
  return { storage: database.url, dataDir };
});
afterAll(() => database?.drop());
