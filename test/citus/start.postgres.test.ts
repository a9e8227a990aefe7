import { afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/model/ids.ts";
import { postgresStorage } from "../../src/stores/postgres/storage.ts";
import { type CitusDatabase, citusDatabase, citusUrl } from "../setup/citus.ts";

const ON = { "citus.enable_unsafe_triggers": "on", "citus.allow_nested_distributed_execution": "on" };

describe.skipIf(!citusUrl)("a start on Citus", () => {
  let database: CitusDatabase;
  afterEach(() => database?.drop());

  async function check(url = database.url): Promise<void> {
    const storage = postgresStorage({ url, now: systemClock });
    await storage.check().finally(() => storage.close());
  }

  /** Creates a user of the database who may create schemas, on every node. */
  async function createUser(): Promise<{ readonly url: string; drop(): Promise<unknown> }> {
    const name = new URL(database.url).pathname.slice(1);
    const user = `${name}_user`;
    await database.query(`CREATE ROLE ${user} LOGIN`);
    await database.everywhere(`GRANT ALL ON DATABASE ${name} TO ${user}`);
    const url = new URL(database.url);
    url.username = user;
    const drop = () => database.query(`DROP OWNED BY ${user}`).then(() => database.query(`DROP ROLE ${user}`));
    return { url: url.href, drop };
  }

  it("is refused without the settings for triggers, and the statements of its advice are sufficient for an ordinary user", async () => {
    database = await citusDatabase({});
    const user = await createUser();
    const refusal = await check(user.url).catch((error: unknown) => error);
    expect(refusal).toMatchObject({
      code: "unavailable",
      details: { kind: "citus" },
      message: expect.stringMatching(/Citus without citus\.enable_unsafe_triggers and citus\.allow_nested_distributed_execution/),
    });
    const advice = /run on the coordinator: (.*)\. Then start/.exec((refusal as Error).message)![1]!;
    for (const statement of advice.split("; ")) await database.query(statement);
    await check(user.url);
    const storage = postgresStorage({ url: user.url, now: systemClock });
    await storage.create("/of/a/user");
    expect(await storage.projects()).toEqual(["/of/a/user"]);
    await storage.remove("/of/a/user");
    await storage.close();
    await user.drop();
  });

  it("is refused if only a worker lacks a setting", async () => {
    database = await citusDatabase();
    const [worker] = await database.workers();
    const name = new URL(worker!).pathname.slice(1);
    await database.query(`ALTER DATABASE ${name} RESET citus.allow_nested_distributed_execution`, worker);
    await expect(check()).rejects.toThrow(/Citus without citus\.allow_nested_distributed_execution, which/);
  });

  it("is refused at the address of a worker", async () => {
    database = await citusDatabase();
    await expect(check((await database.workers())[0])).rejects.toThrow(/is a worker of Citus\. Use the address of the coordinator/);
  });

  it("is refused if every new schema is distributed", async () => {
    database = await citusDatabase({ ...ON, "citus.enable_schema_based_sharding": "on" });
    await expect(check()).rejects.toThrow(/citus\.enable_schema_based_sharding = on/);
  });
});
