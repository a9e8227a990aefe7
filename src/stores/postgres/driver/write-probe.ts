import { randomBytes } from "node:crypto";
import type { PostgresDatabase } from "./driver.ts";
import { quoteName } from "./driver.ts";

/**
 * Does what the first save of a project does, makes a schema with a table and stores a row, then rolls it back: a standby, a
 * read-only server or a full disk fails here as it would fail there. Raises `unavailable`.
 */
export async function probeWrite(database: PostgresDatabase): Promise<void> {
  const schema = quoteName(`cairn_probe_${randomBytes(6).toString("hex")}`);
  const rollback = new Error("The write probe is rolled back.");
  const probe = database.write("pg_catalog", async (tx) => {
    await tx.exec(`CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.probe (value int); INSERT INTO ${schema}.probe VALUES (1)`);
    throw rollback;
  });
  await probe.catch((error: unknown) => {
    if (error !== rollback) throw error;
  });
}
