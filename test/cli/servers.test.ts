import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { dirname, resolve } from "node:path";
import { createInterface } from "node:readline";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { localAuthorization } from "../support/local-token.ts";
import { killProcess, removeFolder, SLOW_START } from "../support/processes.ts";
import { builtCommand, stage } from "./stage.ts";

let main: string;
let s: ReturnType<typeof stage>;
const children: ChildProcess[] = [];
beforeAll(() => {
  main = builtCommand();
});
beforeEach(() => {
  s = stage();
});
afterEach(async () => {
  await Promise.all(children.splice(0).map(killProcess));
  await removeFolder(s.folder);
});

const environment = () => ({ PATH: process.env.PATH!, HOME: s.home, CAIRN_EMBEDDER_KIND: "none" });

async function serve(...args: string[]): Promise<{ url: string; child: ChildProcess; headers: { authorization: string } }> {
  const child = spawn(main, ["serve", "--port", "0", "--json", ...args], {
    cwd: s.project,
    env: { ...environment(), CAIRN_LOG_LEVEL: "warn" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  const [line] = await once(createInterface(child.stdout!), "line");
  const { url, token_file } = JSON.parse(line);
  return { url, child, headers: localAuthorization(dirname(token_file)) };
}

const client = () => new Client({ name: "test", version: "1" });

/** The four calls of the thin capability, through any MCP connection. */
async function saveGetListDelete(connected: Client, extra: Record<string, string>): Promise<void> {
  const { tools } = await connected.listTools();
  expect(tools.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["checkpoint_save", "checkpoint_get", "checkpoint_list", "checkpoint_delete"]),
  );
  const call = async (name: string, args: Record<string, unknown>) =>
    (await connected.callTool({ name, arguments: { detail: "full", ...extra, ...args } })).structuredContent as Record<string, unknown>;
  const { id } = await call("checkpoint_save", { summary: "Over MCP" });
  expect(await call("checkpoint_get", { id })).toMatchObject({ summary: "Over MCP", project_path: s.project });
  expect(await call("checkpoint_list", {})).toMatchObject({ total: 1 });
  // The command line sees what the agent saved.
  expect(JSON.parse((await s.cairn(["checkpoint", "list", "--json"])).stdout).checkpoints).toMatchObject([{ id }]);
  expect(await call("checkpoint_delete", { id })).toMatchObject({ deleted: true });
}

describe("cairn mcp", () => {
  it("serves an agent that started it as .mcp.json says, in its project", async () => {
    const connected = client();
    const checkout = resolve(import.meta.dirname, "../..");
    await connected.connect(
      new StdioClientTransport({
        command: "npx",
        args: ["cairn", "mcp", "--project", s.project],
        cwd: checkout,
        env: environment(),
        stderr: "ignore",
      }),
      SLOW_START,
    );
    await saveGetListDelete(connected, {});
    await connected.close();
  });

  it("reports an invalid configuration on stderr, and writes nothing to stdout", async () => {
    const child = spawn(main, ["mcp"], { cwd: s.project, env: { ...environment(), CAIRN_MCP_TOOLSETS: "everything" } });
    children.push(child);
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (chunk) => (stdout += chunk));
    child.stderr.on("data", (chunk) => (stderr += chunk));
    const [code] = await once(child, "close");
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain("mcp.toolsets must be a list of core");
  });
});

describe("cairn serve", () => {
  it("serves the API, its page and MCP on one port, and stops cleanly", async () => {
    const { url, child, headers } = await serve();
    expect((await fetch(`${url}/health`)).status).toBe(200);
    expect(await (await fetch(`${url}/docs`)).text()).toContain("checkpoint");
    expect(await (await fetch(`${url}/metrics`, { headers })).text()).toContain("# TYPE");
    const connected = client();
    await connected.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } }));
    await saveGetListDelete(connected, { project_path: s.project });
    await connected.close();
    child.kill("SIGINT");
    expect(await once(child, "close")).toEqual([0, null]);
  });

  it("reports a port that is in use", async () => {
    const { url } = await serve();
    const outcome = await s.cairn(["serve", "--port", new URL(url).port]);
    expect(outcome).toMatchObject({ code: 9, stdout: "", stderr: expect.stringContaining("is in use") });
  });

  it("rejects an invalid port", async () => {
    expect(await s.cairn(["serve", "--port", "http"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--port: http.port expected number"),
    });
  });

  it("prints the addresses and the command for the token", async () => {
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 500);
    const { code, stdout, stderr } = await s.cairn(["serve", "--port", "0"], { signal: stop.signal });
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /Cairn is serving on http:\/\/127\.0\.0\.1:\d+\n\n {2}Console {3}http\S+\/ \(cairn ui opens it and signs you in\)\n {2}API page {2}http\S+\/docs\n {2}MCP {7}http\S+\/mcp\n {2}Call it {3}curl -H "Authorization: Bearer \$\(cairn token\)" http\S+\n/,
    );
    const token = (await s.cairn(["token"])).stdout.trim();
    expect(stdout + stderr).not.toContain(token);
  });
});
