import { afterAll, beforeAll, describe, it } from "vitest";
import { PostgresStore } from "../../src/runs.ts";
import { postgresRunStore } from "../../src/stores/postgres/runs/store.ts";
import { runStoreContract } from "../../src/testing/run-store-contract.ts";
import { postgresWanted, type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { checkpointStoreSuite } from "./checkpoint-store-suite.ts";

describe.runIf(postgresWanted)("PostgreSQL", () => {
  const databases: TestDatabase[] = [];
  let next: TestDatabase;
  beforeAll(async () => {
    next = await testDatabase();
    databases.push(next);
  });
  afterAll(async () => {
    for (const database of databases) await database.drop();
  });

  // One database for all cases is quicker; each case finds it empty.
  const open = async () => {
    const store = postgresRunStore({ url: next.url, poolMax: 8 });
    for (const { runId } of await store.listRuns({ limit: 1_000 })) await store.deleteRun(runId);
    await forget(next.url);
    return store;
  };
  for (const { name, run } of runStoreContract({ clock: "own", open })) it(name, run);

  describe("PostgresStore", () => checkpointStoreSuite(() => new PostgresStore(next.url)));
});

/** Also what a store never forgets: the numbers of deleted runs. */
async function forget(url: string): Promise<void> {
  const { default: pg } = await import("pg");
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("TRUNCATE runs.runs, runs.checkpoints, runs.graphs, runs.workers");
  await client.end();
}
