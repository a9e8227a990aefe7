import { spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { open } from "../../src/index.ts";
import { bearer } from "../support/local-token.ts";
import { type Api, api, REMOTE } from "./api.ts";

const compared = vi.hoisted(() => ({ times: 0 }));
vi.mock("node:crypto", async (original) => {
  const crypto = await original<typeof import("node:crypto")>();
  return {
    ...crypto,
    timingSafeEqual: (a: Buffer, b: Buffer) => {
      compared.times++;
      return crypto.timingSafeEqual(a, b);
    },
  };
});

const project = "/home/me/project";
let dataDir: string;
let now: string;
let server: Api;

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "cairn-keys-"));
  now = "2026-03-01T00:00:00.000Z";
  server = await api({ cairn: await open({ dataDir, now: () => now, embedder: { kind: "none" } }) });
});

afterEach(async () => {
  await server.cairn.close();
  await rm(dataDir, { recursive: true, force: true });
});

const create = (changes: Partial<Parameters<typeof server.cairn.keys.create>[0]> = {}) =>
  server.cairn.keys.create({ label: "test", access: "write", projects: [project], ...changes });
const list = (headers: Record<string, string>, path = project, connection: { remoteAddress: string } = REMOTE) =>
  server.call("POST", "/v1/checkpoint/list", { project_path: path }, { headers, connection });
const save = (key: string, path = project) =>
  server.call("POST", "/v1/checkpoint/save", { project_path: path, summary: "x" }, { headers: bearer(key), connection: REMOTE });

describe("API keys on disk", () => {
  it("keep a hash of the secret and nothing else of it, for their owner only", async () => {
    const { key, id } = await create();
    expect(key).toMatch(/^cairn_[0-9a-f]{12}_[A-Za-z0-9_-]{43}$/);
    const secret = key.slice(`cairn_${id}_`.length);
    expect(await readdir(dataDir)).toEqual(["keys.json"]);
    const path = join(dataDir, "keys.json");
    const content = await readFile(path, "utf8");
    expect(content).toContain(id);
    expect(content).not.toContain(secret);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  it("are known to a process that starts later, until they are revoked in another", async () => {
    const { key, id } = await create();
    const other = await open({ dataDir, embedder: { kind: "none" } });
    expect(await other.keys.verify(key)).toMatchObject({ id, access: "write", projects: [project] });
    await server.cairn.keys.revoke(id);
    expect(await other.keys.verify(key)).toBeUndefined();
    expect(await other.keys.revoke(id)).toBe(false);
    await other.close();
  });

  it("are all there when several processes make some at once", async () => {
    const script = `const { open } = await import(${JSON.stringify(join(import.meta.dirname, "../../dist/index.js"))});
      const cairn = await open({ dataDir: ${JSON.stringify(dataDir)} });
      for (let i = 0; i < 10; i++) await cairn.keys.create({ label: "k" + i, access: "read", projects: "all" });`;
    const exits = await Promise.all(
      Array.from({ length: 4 }, () => {
        const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: "inherit" });
        return new Promise((resolve) => child.on("exit", resolve));
      }),
    );
    expect(exits).toEqual([0, 0, 0, 0]);
    expect(await server.cairn.keys.list()).toHaveLength(40);
    expect(await readdir(dataDir)).toEqual(["keys.json"]);
  });

  it("are there once acknowledged, whenever the process is killed, and the file is never torn", async () => {
    const script = `const { open } = await import(${JSON.stringify(join(import.meta.dirname, "../../dist/index.js"))});
      const cairn = await open({ dataDir: ${JSON.stringify(dataDir)} });
      for (;;) process.stdout.write((await cairn.keys.create({ label: "k", access: "read", projects: "all" })).id + "\\n");`;
    const acknowledged: string[] = [];
    for (let round = 0; round < 8; round++) {
      const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "inherit"] });
      let output = "";
      child.stdout.on("data", (data) => {
        output += data;
        if (output.split("\n").length > 3 + round) child.kill("SIGKILL"); // at another point of a write in each round
      });
      await new Promise((resolve) => child.on("close", resolve));
      acknowledged.push(...output.split("\n").slice(0, -1));
      const ids = (await server.cairn.keys.list()).map(({ id }) => id);
      expect(ids).toEqual(expect.arrayContaining(acknowledged));
      // The lock of a process that was killed under it counts as left behind after ten seconds; here the clock is moved instead.
      await utimes(join(dataDir, "keys.json.lock"), new Date(0), new Date(0)).catch(() => {});
    }
    await create();
    expect((await server.cairn.keys.list()).length).toBeGreaterThan(acknowledged.length);
  });

  it("are not blocked by the lock of a process that died", async () => {
    const lock = join(dataDir, "keys.json.lock");
    await writeFile(lock, "");
    await utimes(lock, new Date(0), new Date(0));
    await create();
    expect(await server.cairn.keys.list()).toHaveLength(1);
    expect(await readdir(dataDir)).toEqual(["keys.json"]);
  });

  it.each(["", "{", '{"version":1}', '{"version":2,"keys":[]}', '{"version":1,"keys":[{"id":"x"}]}'])(
    "let nobody in when the file is damaged: %s",
    async (content) => {
      const { key } = await create();
      await writeFile(join(dataDir, "keys.json"), content);
      const { status, body } = await list(bearer(key));
      expect([status, body.error.code]).toEqual([503, "unavailable"]);
      await expect(create()).rejects.toMatchObject({ code: "unavailable" });
      expect(await readFile(join(dataDir, "keys.json"), "utf8")).toBe(content); // left for a person to look at
    },
  );
});

describe("callers", () => {
  it("are let in with a key, as a bearer token or in x-api-key", async () => {
    const { key } = await create();
    expect((await list(bearer(key))).status).toBe(200);
    expect((await list({ "x-api-key": key })).status).toBe(200);
    expect((await list({ authorization: `bearer ${key}` })).status).toBe(200);
  });

  it("learn nothing from a refusal: every wrong key gets the same answer, after the same comparison", async () => {
    const { key, id } = await create();
    const expired = await create({ expiresAt: "2026-03-02T00:00:00.000Z" });
    now = "2026-03-03T00:00:00.000Z";
    const revoked = await create();
    await server.cairn.keys.revoke(revoked.id);
    const wrong = [
      `cairn_${id}_${"A".repeat(43)}`,
      key.replace(id, "0".repeat(12)),
      key.slice(0, -1),
      `${key}A`,
      expired.key,
      revoked.key,
      "nonsense",
      "x".repeat(10_000),
    ];
    for (const presented of wrong) {
      compared.times = 0;
      const { status, headers, body } = await list(bearer(presented));
      expect([status, headers.get("www-authenticate")]).toEqual([401, 'Bearer realm="cairn"']);
      expect({ ...body.error, request_id: "" }).toEqual({
        code: "unauthorized",
        name: "UNAUTHORIZED",
        message:
          "This credential is not valid. Use the local token (`cairn token` prints it) or an API key that is neither expired nor revoked.",
        request_id: "",
      });
      expect(compared.times).toBe(2); // with the token and with a key
    }
    expect((await list(bearer(key))).status).toBe(200);
  });

  it("may not do more than the key says", async () => {
    const reader = await create({ access: "read" });
    expect((await list(bearer(reader.key))).status).toBe(200);
    const { status, body } = await save(reader.key);
    expect([status, body.error.code]).toEqual([403, "forbidden"]);
    expect((await save((await create()).key)).status).toBe(200);
    expect(
      (await server.call("GET", "/v1/key/list", undefined, { headers: bearer((await create()).key), connection: REMOTE })).status,
    ).toBe(403);
  });

  it("may not touch another project, and learn nothing about it", async () => {
    const mine = await create();
    const other = "/home/me/other";
    await server.cairn.checkpoints.save({ projectPath: other, summary: "secret plan" });
    for (const path of [other, "/home/me/absent"]) {
      expect((await save(mine.key, path)).status).toBe(403);
      const { status, body } = await list(bearer(mine.key), path);
      expect([status, body.error.message]).toEqual([403, "This key is not valid for that project. Use a key of the project."]);
    }
    expect(await server.cairn.projects()).toEqual([other]);
    expect((await server.cairn.checkpoints.list({ projectPath: other })).total).toBe(1);
  });

  it("with a key may come by any name and from any page", async () => {
    const { key } = await create();
    expect((await list({ ...bearer(key), host: "cairn.example", origin: "https://console.example" })).status).toBe(200);
  });

  it("see the metrics only with a key for all projects", async () => {
    const withMetrics = await api({ cairn: server.cairn, metrics: async () => "up 1\n" });
    const get = (headers: Record<string, string>) => withMetrics.call("GET", "/metrics", undefined, { headers, connection: REMOTE });
    expect((await get({})).status).toBe(401);
    expect((await get(bearer((await create({ access: "admin" })).key))).status).toBe(403);
    expect(await get(bearer((await create({ access: "read", projects: "all" })).key))).toMatchObject({ status: 200, body: "up 1\n" });
    expect((await server.call("GET", "/metrics")).status).toBe(404);
  });
});

describe("key operations", () => {
  it("make, list and revoke keys", async () => {
    const made = await server.call("POST", "/v1/key/create", { label: "ops", access: "admin", all_projects: true });
    expect(made.status).toBe(201);
    expect(made.body).toMatchObject({ label: "ops", access: "admin", all_projects: true, projects: [], created_at: now });
    const admin = { headers: bearer(made.body.key), connection: REMOTE };
    const listed = await server.call("GET", "/v1/key/list", undefined, admin);
    expect(listed.body.keys).toEqual([expect.objectContaining({ id: made.body.id })]);
    expect(JSON.stringify(listed.body)).not.toMatch(/hash|secret/i);
    expect((await server.call("DELETE", `/v1/key/${made.body.id}`, undefined, admin)).body).toEqual({ revoked: true });
    expect((await server.call("GET", "/v1/key/list", undefined, admin)).status).toBe(401);
  });

  it("need an admin of all projects: one of some could make itself a key for more", async () => {
    const { key } = await create({ access: "admin" });
    const as = { headers: bearer(key), connection: REMOTE };
    expect((await server.call("POST", "/v1/key/create", { label: "more", all_projects: true }, as)).status).toBe(403);
    expect((await server.call("GET", "/v1/key/list", undefined, as)).status).toBe(403);
    expect((await server.call("DELETE", "/v1/key/000000000000", undefined, as)).status).toBe(403);
    expect(await server.cairn.keys.list()).toHaveLength(1);
  });

  it.each([
    { label: "x" },
    { label: "x", projects: [] },
    { label: "x", projects: ["/a"], all_projects: true },
    { label: "", all_projects: true },
    { label: "x", all_projects: true, access: "root" },
    { label: "x", all_projects: true, expires_at: "2020-01-01T00:00:00Z" },
    { label: "x", all_projects: true, expires_at: "soon" },
  ])("refuse %o", async (input) => {
    expect((await server.call("POST", "/v1/key/create", input)).status).toBe(400);
    expect(await server.cairn.keys.list()).toEqual([]);
  });
});
