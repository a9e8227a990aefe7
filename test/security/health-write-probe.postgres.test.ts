import pg from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import { api } from "../http/api.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";

let database: TestDatabase;
let admin: pg.Client;
let cairn: Cairn;

beforeEach(async () => {
  database = await testDatabase();
  admin = new pg.Client({ connectionString: database.url });
  await admin.connect();
});
afterEach(async () => {
  await cairn?.close();
  await admin.end();
  await database.drop();
});

const start = async () => {
  cairn = await open({ storage: database.url, embedder: { kind: "none" } });
  return api({ cairn });
};
const schemas = async () => (await admin.query("SELECT nspname FROM pg_namespace ORDER BY nspname")).rows.map(({ nspname }) => nspname);

describe("a server whose PostgreSQL takes no writes", () => {
  it("is not ready on a server that is read-only, as a standby is", async () => {
    await admin.query(`ALTER DATABASE ${new URL(database.url).pathname.slice(1)} SET default_transaction_read_only = on`);
    const { status, body } = await (await start()).call("GET", "/health/ready");
    expect([status, body.ready, body.checks.storage.reason]).toEqual([503, false, expect.stringContaining("is read-only")]);
  });

  it("is ready otherwise, and the probe leaves no schema behind", async () => {
    const { call } = await start();
    const before = await schemas();
    expect((await call("GET", "/health/ready")).status).toBe(200);
    for (let count = 0; count < 3; count++) await cairn.check();
    expect(await schemas()).toEqual(before);
  });
});
