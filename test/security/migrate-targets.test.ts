import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { assertAllowedTarget } from "../../src/migrate/remote-target.ts";
import { type Api, api, REMOTE } from "../http/api.ts";

const MINE = "/home/me/mine";
let folder: string;
let server: Api;
let listener: Server;
let connections: number;
let port: number;

beforeEach(async () => {
  connections = 0;
  listener = createServer((socket) => {
    connections++;
    socket.destroy();
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  port = (listener.address() as { port: number }).port;
  folder = await mkdtemp(join(tmpdir(), "cairn-migrate-"));
});
afterEach(async () => {
  await server.cairn.close();
  await new Promise((resolve) => listener.close(resolve));
  await rm(folder, { recursive: true, force: true });
});

async function serve(allowedHosts: readonly string[] = []): Promise<void> {
  const options = { dataDir: folder, stateDir: join(folder, "state"), embedder: { kind: "none" } as const };
  server = await api({ cairn: await open({ ...options, migrate: { allowedHosts } }) });
  await server.cairn.checkpoints.save({ projectPath: MINE, summary: "one" });
}

const keyFor = async (projects: "all" | string[]) => (await server.cairn.keys.create({ label: "k", access: "admin", projects })).key;
const migrate = (key: string | undefined, to: string, more = {}) =>
  server.call(
    "POST",
    "/v1/migrate",
    { project_path: MINE, to, dry_run: true, ...more },
    key === undefined ? {} : { headers: { authorization: `Bearer ${key}` }, connection: REMOTE },
  );

describe("migrate over HTTP", () => {
  it("connects to no host that the server's settings do not name, whatever the key", async () => {
    await serve();
    const { status, body } = await migrate(await keyFor("all"), `postgres://u@127.0.0.1:${port}/db`);
    expect([status, body.error.message]).toEqual([403, expect.stringMatching(/migrate\.allowed_hosts/)]);
    expect(connections).toBe(0);
  });

  it("is no port scanner of an allowed host", async () => {
    await serve(["127.0.0.1"]);
    expect((await migrate(await keyFor("all"), `postgres://u@127.0.0.1:${port}/db`)).status).toBe(403);
    expect(connections).toBe(0);
  });

  it("needs a key for all projects, also to go back", async () => {
    await serve([`127.0.0.1:${port}`]);
    const key = await keyFor([MINE]);
    expect((await migrate(key, `postgres://u@127.0.0.1:${port}/db`)).status).toBe(403);
    expect((await migrate(key, "sqlite")).status).toBe(403);
    expect(
      (await server.call("POST", "/v1/migrate", { project_path: MINE, rollback: true }, { headers: { authorization: `Bearer ${key}` } }))
        .status,
    ).toBe(403);
    expect(connections).toBe(0);
  });

  it("connects to a host of the list for such a key, and to any host for the local user", async () => {
    await serve([`127.0.0.1:${port}`]);
    expect((await migrate(await keyFor("all"), `postgres://u:p@127.0.0.1:${port}/db?sslmode=disable`)).status).toBe(503);
    expect(connections).toBeGreaterThan(0);
    const before = connections;
    expect((await migrate(undefined, `postgres://u@localhost:${port}/db?sslmode=disable`)).status).toBe(503);
    expect(connections).toBeGreaterThan(before);
  });
});

describe("a URL that hides another host or a file behind an allowed one", () => {
  beforeEach(() => serve());

  it.each([
    "postgres://db.example.com/db?host=evil.example",
    "postgres://db.example.com/db?hostaddr=10.0.0.1",
    "postgres://db.example.com/db?port=22",
    "postgres://db.example.com/db?sslmode=require&sslrootcert=/etc/passwd",
    "postgres://db.example.com/db?sslkey=/home/me/.ssh/id_rsa",
    "postgres://db.example.com/db?options=-c%20search_path%3Dx",
    "postgres://db.example.com,evil.example/db",
    "postgres://db.example.com@evil.example/db",
    "postgres://u@db.example.com@evil.example/db",
    "postgres://u@evil.example#@db.example.com/db",
    "postgres://u@evil.example\\@db.example.com/db",
    "postgres://u@evil.example/@db.example.com/db",
    "postgres://u@evil.example?@db.example.com/db",
    "postgres://u@%64b.example.com/db",
    "postgres://u@%2Fvar%2Frun%2Fpostgresql/db",
    "postgres:///db?host=/var/run/postgresql",
    "postgres:/db.example.com/db",
    "postgres://db.example.com.evil.example/db",
    "postgres://evil.example/db.example.com",
    "postgres://db.example.com:5433/db",
    "postgres://db.example.com\u0000.evil/db",
    " postgres://db.example.com/db",
    "postgres://db.example.com/db\n",
    "socket:/var/run/postgresql?db=x",
    "/var/run/postgresql db",
    "http://db.example.com/db",
  ])("is refused: %j", (url) => {
    expect(() => assertAllowedTarget(url, ["db.example.com"])).toThrow();
  });

  it.each([
    ["postgres://db.example.com/db", ["db.example.com"]],
    ["postgresql://cairn:p%40ss@DB.example.com:5432/cairn?sslmode=verify-full", ["db.example.com"]],
    ["postgres://u@db.example.com:5433/db", ["other", "db.example.com:5433"]],
    ["postgres://u@[::1]/db", ["[::1]"]],
    ["postgres://u@[::1]:5433/db", ["[::1]:5433"]],
  ])("passes in its plain form: %s", (url, hosts) => {
    assertAllowedTarget(url, hosts);
  });
});
