import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { CairnError } from "../../src/model/errors.ts";
import { projectDatabaseName } from "../../src/model/ids.ts";
import { withTimeLimit } from "../../src/scheduling/calls.ts";
import { openPostgres, type PostgresDatabase, type PostgresOptions } from "../../src/stores/postgres/driver/driver.ts";
import { ensureSchema } from "../../src/stores/postgres/driver/schema-version.ts";
import { postgresStorage } from "../../src/stores/postgres/storage.ts";
import { sampleCheckpoint } from "../../src/testing/checkpoint-samples.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";

let database: TestDatabase;
let admin: pg.Client;
const opened: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  database = await testDatabase();
  admin = new pg.Client({ connectionString: database.url });
  await admin.connect();
  await admin.query("CREATE SCHEMA work; CREATE TABLE work.notes (id integer PRIMARY KEY, text text NOT NULL DEFAULT '')");
});
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});
afterAll(async () => {
  await admin.end();
  await database.drop();
});

function open(options: Partial<PostgresOptions> = {}): PostgresDatabase {
  const one = openPostgres({ url: database.url, ...options });
  opened.push(one);
  return one;
}

const openStorage = () => {
  const one = postgresStorage({ url: database.url, now: () => new Date().toISOString() });
  opened.push(one);
  return one;
};

const count = async () => Number((await admin.query("SELECT count(*) FROM work.notes")).rows[0].count);

describe("the PostgreSQL driver", () => {
  it("commits all of a write or nothing", async () => {
    const db = open();
    const before = await count();
    await db.write("work", async (tx) => {
      await tx.run("INSERT INTO notes (id) VALUES ($1)", 1);
      await tx.run("INSERT INTO notes (id) VALUES ($1)", 2);
    });
    await expect(
      db.write("work", async (tx) => {
        await tx.run("INSERT INTO notes (id) VALUES ($1)", 3);
        throw new CairnError("invalid_input", "no");
      }),
    ).rejects.toMatchObject({ code: "invalid_input" });
    expect(await count()).toBe(before + 2);
  });

  it("does not call a transaction done in which an error was swallowed", async () => {
    const db = open();
    const before = await count();
    await expect(
      db.write("work", async (tx) => {
        await tx.run("INSERT INTO notes (id) VALUES ($1)", 10);
        await tx.run("INSERT INTO notes (id) VALUES ($1)", 10).catch(() => {});
      }),
    ).rejects.toThrow(/not passed on/);
    expect(await count()).toBe(before);
  });

  it("reads one snapshot and cannot write in a read", async () => {
    const db = open();
    const seen = await db.read("work", async (tx) => {
      const first = await tx.get<{ n: number }>("SELECT count(*) AS n FROM notes");
      await admin.query("INSERT INTO work.notes (id) VALUES (20)");
      return [first!.n, (await tx.get<{ n: number }>("SELECT count(*) AS n FROM notes"))!.n];
    });
    expect(seen[0]).toBe(seen[1]);
    await expect(db.read("work", (tx) => tx.run("INSERT INTO notes (id) VALUES ($1)", 21))).rejects.toMatchObject({ code: "unavailable" });
  });

  it("looks for tables in the given schema only", async () => {
    await admin.query("CREATE TABLE public.elsewhere (id integer)");
    await expect(open().read("work", (tx) => tx.all("SELECT * FROM elsewhere"))).rejects.toMatchObject({ code: "unavailable" });
    expect(() => open().read('work"; DROP SCHEMA work; --', async () => 1)).toThrow(/cannot name a schema/);
  });

  it("runs a transaction again that lost a deadlock", async () => {
    const db = open();
    await admin.query("INSERT INTO work.notes (id) VALUES (31), (32)");
    let met = 0;
    const cross = (first: number, second: number) =>
      db.write("work", async (tx) => {
        await tx.run("UPDATE notes SET text = text || $1 WHERE id = $2", "x", first);
        met++;
        for (let waited = 0; met < 2 && waited < 100; waited++) await sleep(10);
        await tx.run("UPDATE notes SET text = text || $1 WHERE id = $2", "x", second);
      });
    await Promise.all([cross(31, 32), cross(32, 31)]);
    const { rows } = await admin.query("SELECT text FROM work.notes WHERE id IN (31, 32)");
    expect(rows).toEqual([{ text: "xx" }, { text: "xx" }]);
  });

  it("runs a transaction again whose connection was cut before the commit", async () => {
    const db = open();
    let runs = 0;
    await db.write("work", async (tx) => {
      runs++;
      await tx.run("INSERT INTO notes (id) VALUES ($1)", 40);
      if (runs > 1) return;
      await cut();
      await sleep(100); // until the news has come through
    });
    expect(runs).toBe(2);
    expect((await admin.query("SELECT 1 FROM work.notes WHERE id = 40")).rowCount).toBe(1);
  });

  it("replaces idle connections that were cut", async () => {
    const db = open();
    await db.read("work", (tx) => tx.get("SELECT 1"));
    await cut();
    await sleep(50);
    expect(await db.read("work", (tx) => tx.get("SELECT 1 AS one"))).toEqual({ one: 1 });
  });

  it("says that the outcome is unknown when the commit itself was cut off, and repeats it if that is harmless", async () => {
    const proxy = await cuttingProxy(database.url);
    try {
      const insert = (id: number) => (tx: { run(sql: string, ...params: number[]): Promise<number> }) =>
        tx.run("INSERT INTO notes (id) VALUES ($1) ON CONFLICT DO NOTHING", id);
      const db = open({ url: proxy.url });
      await db.write("work", insert(50));
      proxy.cutNextCommit();
      await expect(db.write("work", insert(51))).rejects.toMatchObject({
        code: "unavailable",
        message: expect.stringMatching(/may or may not/),
      });
      proxy.cutNextCommit();
      await db.write("work", insert(52), { idempotent: true });
      expect((await admin.query("SELECT 1 FROM work.notes WHERE id = 52")).rowCount).toBe(1);
    } finally {
      await proxy.close();
    }
  });

  it("stops a statement that takes too long", async () => {
    await expect(open({ statementTimeoutMs: 100 }).read("pg_catalog", (tx) => tx.get("SELECT pg_sleep(20)"))).rejects.toMatchObject({
      code: "timeout",
    });
  });

  it("waits a bounded time for a free connection, then says that all are busy", async () => {
    const db = open({ poolMax: 1, acquireTimeoutMs: 1_500 });
    const { release, held } = await hold(db);
    await expect(db.read("work", (tx) => tx.get("SELECT 1"))).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(/busy/),
    });
    release();
    await held;
    expect(await db.read("work", (tx) => tx.get("SELECT 1 AS one"))).toEqual({ one: 1 });
  });

  it("lets a call wait for a busy connection longer than for a new one", async () => {
    const connectTimeoutMs = 500;
    const db = open({ poolMax: 1, connectTimeoutMs });
    const { release, held } = await hold(db);
    const waiting = db.read("work", (tx) => tx.get("SELECT 1 AS one"));
    await sleep(2 * connectTimeoutMs);
    release();
    await held;
    expect(await waiting).toEqual({ one: 1 });
  });

  it("serves the call that began first, however late it asks for a connection", async () => {
    const db = open({ poolMax: 1 });
    const { release, held } = await hold(db);
    const order: string[] = [];
    const read = (name: string) => db.read("work", async () => void order.push(name));
    let proceed = () => {};
    const firstCall = withTimeLimit(60_000, async () => {
      await new Promise<void>((resolve) => {
        proceed = resolve;
      });
      await read("earlier");
    });
    const secondCall = withTimeLimit(60_000, () => read("later"));
    const outside = read("outside of a call");
    proceed();
    await sleep(0);
    release();
    await Promise.all([held, firstCall, secondCall, outside]);
    expect(order).toEqual(["earlier", "later", "outside of a call"]);
  });

  it("refuses at once when too many calls wait already", async () => {
    const db = open({ poolMax: 1 });
    const { release, held } = await hold(db);
    const waiting = Array.from({ length: 1_000 }, () => db.read("work", async () => 1));
    await expect(db.read("work", async () => 1)).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(/1000 calls already wait/),
    });
    release();
    await held;
    expect(await Promise.all(waiting)).toHaveLength(1_000);
  });

  it("refuses work after it was closed", async () => {
    const db = openPostgres({ url: database.url });
    await db.close();
    await db.close();
    await expect(db.read("work", async () => 1)).rejects.toMatchObject({ code: "unavailable" });
  });

  it("explains what is wrong with a server or URL, and never shows the password", async () => {
    const { hostname, port } = new URL(database.url);
    const wrong: [string, RegExp][] = [
      [`postgres://someone:s3cret@${hostname}:1/nowhere`, /cannot be reached/],
      [`postgres://postgres:s3cret@${hostname}:${port}/no_such_database`, /There is no database/],
      [`postgres://no_such_user:s3cret@${hostname}:${port}/postgres`, /refused the user name or password/],
      ["postgres://someone:s3cret@no-such-host.invalid/x", /is not known|cannot be looked up/],
    ];
    for (const [url, message] of wrong) {
      const error = await open({ url })
        .read("work", async () => 1)
        .catch((reason) => reason);
      expect(error).toMatchObject({ code: "unavailable", message: expect.stringMatching(message) });
      expect(`${error.message} ${JSON.stringify(error.details)} ${error.stack} ${error.cause?.stack}`).not.toContain("s3cret");
    }
    expect(() => open({ url: "postgres://someone:s3cret@[bad/x" })).toThrow(expect.not.stringContaining("s3cret"));
  });

  it("calls a contradiction a conflict and an impossible character invalid", async () => {
    const db = open();
    await db.write("work", (tx) => tx.run("INSERT INTO notes (id) VALUES ($1)", 60));
    await expect(db.write("work", (tx) => tx.run("INSERT INTO notes (id) VALUES ($1)", 60))).rejects.toMatchObject({ code: "conflict" });
    await expect(db.read("work", (tx) => tx.get("SELECT 1 FROM notes WHERE text = $1", "a\u0000b"))).rejects.toMatchObject({
      code: "invalid_input",
    });
  });

  it("names itself to the server", async () => {
    const named = await open().read("pg_catalog", (tx) => tx.get("SELECT current_setting('application_name') AS name"));
    expect(named).toEqual({ name: "cairn" });
  });
});

describe("A PostgreSQL schema", () => {
  const first = { version: 1, name: "first", sql: "CREATE TABLE first (id integer); INSERT INTO first VALUES (1)" };

  it("is created once when ten processes start at the same time", async () => {
    await Promise.all(Array.from({ length: 10 }, () => ensureSchema(open({ poolMax: 1 }), "ten", first)));
    expect((await admin.query("SELECT migration_id AS id FROM ten.schema_migrations ORDER BY 1")).rows).toEqual([{ id: 1 }]);
    expect((await admin.query("SELECT id FROM ten.first")).rows).toEqual([{ id: 1 }]);
  });

  it("is one project when ten handles create it at the same time", async () => {
    const made = await Promise.all(Array.from({ length: 10 }, () => openStorage().create("/ten")));
    expect(made.map(({ projectPath }) => projectPath)).toEqual(Array(10).fill("/ten"));
  });

  it("is absent after its creation fails", async () => {
    const broken = { version: 1, name: "broken", sql: "CREATE TABLE half (id integer); SELECT * FROM nonsense" };
    await expect(ensureSchema(open(), "broken", broken)).rejects.toThrow();
    expect((await admin.query("SELECT 1 FROM pg_namespace WHERE nspname = 'broken'")).rowCount).toBe(0);
  });

  it.each([
    ["written by a newer version", "INSERT INTO %.schema_migrations VALUES (999, 'later', 'x')", /newer version/],
    ["written by an older version", "UPDATE %.schema_migrations SET migration_id = 0", /older version/],
    ["altered", "UPDATE %.schema_migrations SET checksum = 'x'", /was altered/],
  ])("is refused and stays as it is when it was %s", async (_, sql, message) => {
    const project = `/schemas/${Math.random()}`;
    const schema = projectDatabaseName(project);
    await openStorage().create(project);
    await admin.query(sql.replace("%", schema));
    for (const call of [() => openStorage().find(project), () => openStorage().create(project)])
      await expect(call()).rejects.toMatchObject({ code: "unavailable", message: expect.stringMatching(message) });
  });
});

describe("PostgreSQL storage", () => {
  const put = (id: string, project: string) => sampleCheckpoint(project, { id });

  it("notices a schema that was dropped while it was in use", async () => {
    const project = "/dropped";
    const storage = openStorage();
    const store = await storage.create(project);
    await store.checkpoints.put(put("one", project));
    await admin.query(`DROP SCHEMA ${projectDatabaseName(project)} CASCADE`);
    // The first look finds out, the next one knows.
    await expect(store.checkpoints.get("one")).rejects.toMatchObject({ code: "unavailable" });
    expect(await storage.find(project)).toBeUndefined();
    expect(await storage.projects()).not.toContain(project);
    await (await storage.create(project)).checkpoints.put(put("two", project));
    await admin.query(`DROP SCHEMA ${projectDatabaseName(project)} CASCADE`);
    // A save through a handle from before creates the project again: a save is not refused for that.
    await store.checkpoints.put(put("three", project));
    expect((await (await storage.find(project))?.checkpoints.get("three"))?.id).toBe("three");
  });

  it("refuses a schema that belongs to another project", async () => {
    const [mine, theirs] = ["/mine", "/theirs"];
    await openStorage().create(theirs);
    await admin.query(`ALTER SCHEMA ${projectDatabaseName(theirs)} RENAME TO ${projectDatabaseName(mine)}`);
    await expect(openStorage().find(mine)).rejects.toMatchObject({ code: "conflict" });
    await expect(openStorage().create(mine)).rejects.toMatchObject({ code: "conflict" });
  });

  it("asks the server nothing to find a project it knows", async () => {
    const storage = openStorage();
    await storage.create("/known");
    const before = await transactions();
    for (let calls = 0; calls < 100; calls++) await storage.find("/known");
    expect((await transactions()) - before).toBeLessThan(100);
  });

  it("reports when the user may not make schemas", async () => {
    const reader = `${new URL(database.url).pathname.slice(1)}_reader`; // roles are the whole server's, which other runs use as well
    await admin.query(`CREATE ROLE ${reader} LOGIN`);
    const url = new URL(database.url);
    url.username = reader;
    const storage = postgresStorage({ url: url.href, now: () => new Date().toISOString() });
    opened.push(storage);
    await expect(storage.check()).rejects.toMatchObject({ code: "unavailable", message: expect.stringMatching(/CREATE/) });
    await expect(storage.create("/x")).rejects.toMatchObject({ code: "unavailable", message: expect.stringMatching(/CREATE/) });
    await storage.close();
    await admin.query(`DROP ROLE ${reader}`);
  });

  it("refuses a cursor that is not a time", async () => {
    const { checkpoints } = await openStorage().create("/cursor");
    await expect(checkpoints.list({ limit: 1, offset: 0, sortBy: "created_at", after: { at: "'; --", id: "x" } })).rejects.toMatchObject({
      code: "invalid_input",
    });
  });
});

/** Keeps one connection busy until it is released. */
async function hold(db: PostgresDatabase): Promise<{ release: () => void; held: Promise<void> }> {
  return new Promise((started, failed) => {
    const held: Promise<void> = db.read("work", () => new Promise<void>((release) => started({ release, held })));
    held.catch(failed);
  });
}

/** Ends all connections but ours, as a restart or a failover does, and waits until the server has let go of them. */
async function cut(): Promise<void> {
  const others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
  while ((await admin.query(`SELECT pg_terminate_backend(pid) ${others}`)).rowCount! > 0) await sleep(10);
}

async function transactions(): Promise<number> {
  await sleep(1_100); // the server counts transactions with a delay
  return Number((await admin.query("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")).rows[0].xact_commit);
}

/** Stands between driver and server, and can swallow a COMMIT together with the connection. */
async function cuttingProxy(target: string) {
  const { connect } = await import("node:net");
  const url = new URL(target);
  const sockets = new Set<import("node:net").Socket>();
  let cutting = false;
  const server = createServer((client) => {
    const upstream = connect(Number(url.port), url.hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => sockets.delete(socket));
    }
    client.on("data", (data) => {
      if (cutting && data.includes("COMMIT")) {
        cutting = false;
        client.destroy();
        upstream.destroy();
      } else upstream.write(data);
    });
    upstream.on("data", (data) => client.write(data));
    upstream.on("end", () => client.end());
    client.on("end", () => upstream.end());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const through = new URL(target);
  through.port = String((server.address() as import("node:net").AddressInfo).port);
  return {
    url: through.href,
    cutNextCommit: () => {
      cutting = true;
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
