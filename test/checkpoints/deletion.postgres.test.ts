import { afterAll } from "vitest";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { deletionSuite } from "./deletion.ts";

let database: TestDatabase | undefined;
deletionSuite("PostgreSQL", async (dataDir) => {
  database = await testDatabase();
  return { storage: database.url, dataDir };
});
afterAll(() => database?.drop());
