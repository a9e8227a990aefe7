import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { configuredClient } from "../../src/client/remote/configured-client.ts";
import { loadConfig } from "../../src/config/load.ts";
import { operations } from "../../src/operations/list.ts";
import { localToken } from "../../src/stores/file/local-token.ts";
import { redactSecrets } from "../../src/text/redact.ts";
import { builtCommand, stage } from "../cli/stage.ts";
import { bearer, localAuthorization } from "../support/local-token.ts";
import { killProcess, removeFolder } from "../support/processes.ts";

let main: string;
let s: ReturnType<typeof stage>;
let dataDir: string;
let path: string;
const children: ChildProcess[] = [];
beforeAll(() => {
  main = builtCommand();
});
beforeEach(() => {
  s = stage();
  dataDir = join(s.home, ".cairn");
  path = join(dataDir, "token");
});
afterEach(async () => {
  vi.restoreAllMocks();
  await Promise.all(children.splice(0).map(killProcess));
  await removeFolder(s.folder);
});

async function serve(): Promise<{ url: string; log: () => string }> {
  const env = { PATH: process.env.PATH!, HOME: s.home, CAIRN_EMBEDDER_KIND: "none" };
  const child = spawn(main, ["serve", "--port", "0", "--json"], { cwd: s.project, env, stdio: ["ignore", "pipe", "pipe"] });
  children.push(child);
  let log = "";
  child.stderr!.on("data", (chunk) => (log += chunk));
  child.stdout!.on("data", (chunk) => (log += chunk));
  const [line] = await once(createInterface(child.stdout!), "line");
  return { url: JSON.parse(line).url, log: () => log };
}

const list = async (url: string, headers: Record<string, string>) => (await fetch(`${url}/v1/key/list`, { headers })).status;

describe("cairn token", () => {
  it("creates one token for all processes, in a file that only the user may read", async () => {
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => s.cairn(["token"])));
    const tokens = new Set(outcomes.map(({ stdout }) => stdout));
    expect(tokens.size).toBe(1);
    expect([...tokens][0]).toMatch(/^cairn_local_[A-Za-z0-9_-]{43}\n$/);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(dataDir).mode & 0o777).toBe(0o700);
    expect(readdirSync(dataDir)).toEqual(["token"]);
    expect(JSON.parse((await s.cairn(["token", "--json"])).stdout)).toEqual({ token: [...tokens][0]!.trim(), path });
  });

  it.each([0o640, 0o604, 0o620, 0o666])("refuses a file with mode %o, and replaces it on request", async (mode) => {
    const before = (await s.cairn(["token"])).stdout;
    chmodSync(path, mode);
    for (const command of [["token"], ["serve", "--port", "0"]])
      expect(await s.cairn(command)).toMatchObject({
        code: 9,
        stdout: "",
        stderr: expect.stringMatching(/can be read or written by other users.*cairn token --rotate/),
      });
    const after = (await s.cairn(["token", "--rotate"])).stdout;
    expect(after).not.toBe(before);
    expect(await s.cairn(["token"])).toMatchObject({ code: 0, stdout: after });
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it.each([
    ["a symbolic link", () => symlinkSync(join(s.folder, "elsewhere"), path)],
    ["a folder", () => mkdirSync(path)],
    ["an empty file", () => writeFileSync(path, "", { mode: 0o600 })],
    ["a token of another shape", () => writeFileSync(path, "admin\n", { mode: 0o600 })],
    ["a huge file", () => writeFileSync(path, "x".repeat(10_000_000), { mode: 0o600 })],
  ])("refuses %s in place of the file", async (_name, plant) => {
    mkdirSync(dataDir, { recursive: true });
    writeFileSync(join(s.folder, "elsewhere"), `cairn_local_${"A".repeat(43)}\n`, { mode: 0o600 });
    plant();
    expect(await s.cairn(["token"])).toMatchObject({ code: 9, stdout: "", stderr: expect.stringContaining(path) });
  });

  it("refuses a file that another user planted", async () => {
    await s.cairn(["token"]);
    vi.spyOn(process, "geteuid").mockReturnValue(process.geteuid!() + 1); // the file is another user's now
    expect(await s.cairn(["token"])).toMatchObject({ code: 9, stderr: expect.stringContaining("belongs to another user") });
  });

  it("is redacted in stored text like a key", async () => {
    const token = (await s.cairn(["token"])).stdout.trim();
    expect(redactSecrets(`curl with ${token} please`).text).not.toContain(token);
  });
});

describe("cairn serve", () => {
  it("creates the token, accepts it after keys exist, and never writes it to its output or log", async () => {
    const { url, log } = await serve();
    const headers = localAuthorization(dataDir);
    expect(await list(url, {})).toBe(401);
    expect(await list(url, headers)).toBe(200);
    expect((await s.cairn(["key", "create", "laptop", "--access", "read", "--all-projects"])).code).toBe(0);
    expect(await list(url, headers)).toBe(200);
    expect(await list(url, bearer(`${headers.authorization.slice(7)}x`))).toBe(401);
    expect(log()).toContain("token_file");
    expect(log()).not.toContain(headers.authorization.slice(7));
  });

  it("refuses the old token once it was rotated, and any token while others can read the file", async () => {
    const { url, log } = await serve();
    const before = localAuthorization(dataDir);
    const after = bearer((await s.cairn(["token", "--rotate"])).stdout.trim());
    expect([await list(url, before), await list(url, after)]).toEqual([401, 200]);
    chmodSync(path, 0o644);
    expect(await list(url, after)).toBe(401);
    await expect.poll(log).toContain("can be read or written by other users");
    chmodSync(path, 0o600);
    expect(await list(url, after)).toBe(200);
  });
});

describe("the client with api.url", () => {
  const keyList = operations.find(({ name }) => name === "key_list")!;

  it("uses the local token on loopback without further settings", async () => {
    const { url } = await serve();
    const { code, stdout, stderr } = await s.cairn(["checkpoint", "save", "Over HTTP", "--api-url", url, "--json"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(JSON.parse(stdout)).toMatchObject({ summary: "Over HTTP" });
  });

  it.each([
    "http://192.0.2.1:7483",
    "http://127.0.0.1.evil.example",
    "http://localhost.evil.example",
    "http://0.0.0.0:7483",
    "https://memory.example",
  ])("does not send the local token to %s", async (url) => {
    await localToken({ dataDir }).readOrCreate();
    const sent = await headersSentTo(url);
    expect(sent.authorization).toBeUndefined();
  });

  it.each(["http://127.0.0.1:7483", "http://localhost:7483", "http://[::1]:7483"])("sends it to %s", async (url) => {
    const token = await localToken({ dataDir }).readOrCreate();
    expect((await headersSentTo(url)).authorization).toBe(`Bearer ${token}`);
  });

  it("does not follow a redirect with it", async () => {
    await localToken({ dataDir }).readOrCreate();
    const seen: IncomingHttpHeaders[] = [];
    const thief = createServer((request, response) => {
      seen.push(request.headers);
      response.end("{}");
    });
    await new Promise<void>((resolve) => thief.listen(0, "127.0.0.1", resolve));
    const thiefUrl = `http://127.0.0.1:${(thief.address() as AddressInfo).port}/`;
    const server = createServer((_request, response) => response.writeHead(307, { location: thiefUrl }).end());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const client = await configuredClient(config(), url);
    await expect(client.call(keyList, {})).rejects.toMatchObject({ code: "unavailable" });
    expect(seen).toEqual([]);
    thief.close();
    server.close();
  });

  it("works without a token file, and reports what is missing", async () => {
    expect(existsSync(path)).toBe(false);
    expect((await headersSentTo("http://127.0.0.1:7483")).authorization).toBeUndefined();
  });

  const config = () => loadConfig({ env: {}, home: s.home, cwd: s.project }).config;

  /** What the client would send to this address; nothing leaves this process. */
  async function headersSentTo(url: string): Promise<Record<string, string>> {
    const own = globalThis.fetch;
    let sent: Record<string, string> = {};
    globalThis.fetch = async (_target, init) => {
      sent = init!.headers as Record<string, string>;
      return Response.json({ keys: [] });
    };
    try {
      await (await configuredClient(config(), url)).call(keyList, {});
    } finally {
      globalThis.fetch = own;
    }
    return sent;
  }
});
