import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = resolve(import.meta.dirname, "../..");
const folder = realpathSync(mkdtempSync(join(tmpdir(), "cairn-tarball-")));
const main = join(folder, "node_modules/cairn-memory/dist/bundle/main.cjs");
const project = join(folder, "project");
const env = { ...process.env, CAIRN_DATA_DIR: join(folder, "data"), CAIRN_EMBEDDER_KIND: "static" };

/** Packs this package, unpacks it elsewhere, and links only the packages that a user gets. */
beforeAll(() => {
  const run = (command: string, args: string[], cwd: string) => {
    const { status, stderr } = spawnSync(command, args, { cwd, encoding: "utf8" });
    if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${stderr}`);
  };
  run("npm", ["pack", "--ignore-scripts", "--pack-destination", folder], root);
  const tarball = readdirSync(folder).find((name) => name.endsWith(".tgz"))!;
  mkdirSync(join(folder, "node_modules/cairn-memory"), { recursive: true });
  mkdirSync(project);
  run("tar", ["-xzf", tarball, "-C", "node_modules/cairn-memory", "--strip-components", "1"], folder);
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  for (const [path, { dev, devOptional, peer }] of Object.entries<Record<string, unknown>>(packages)) {
    if (!path || dev || devOptional || peer) continue;
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    symlinkSync(join(root, path), join(folder, path), "dir");
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const cairn = (...args: string[]) => spawnSync(process.execPath, [main, ...args], { cwd: project, env, encoding: "utf8" });

describe("the packed tarball", () => {
  it("saves and finds a checkpoint, and indexes code, without development packages", () => {
    expect(cairn("--version")).toMatchObject({ status: 0, stderr: "" });
    expect(cairn("checkpoint", "save", "Parser done, lexer next")).toMatchObject({ status: 0, stderr: "" });
    expect(cairn("checkpoint", "search", "parser").stdout).toContain("Parser done");
    expect(cairn("code", "index", join(folder, "node_modules/cairn-memory/dist/text"), "--wait").status).toBe(0);
  });

  it("answers initialize and lists its tools over stdio", async () => {
    const child = spawn(process.execPath, [main, "mcp"], { cwd: project, env, stdio: ["pipe", "pipe", "inherit"] });
    const exited = new Promise((done) => child.once("exit", done));
    const send = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
    const clientInfo = { name: "test", version: "1" };
    send({ id: 1, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo } });
    const answers: { id?: number; result?: { serverInfo?: object; tools?: { name: string }[] } }[] = [];
    for await (const line of createInterface({ input: child.stdout })) {
      answers.push(JSON.parse(line));
      if (answers.at(-1)!.id === 1) {
        send({ method: "notifications/initialized" });
        send({ id: 2, method: "tools/list" });
      }
      if (answers.at(-1)!.id === 2) break;
    }
    child.stdin.end();
    await exited;
    expect(answers[0]!.result!.serverInfo).toMatchObject({ name: expect.stringMatching(/cairn/i) });
    expect(answers.at(-1)!.result!.tools!.map(({ name }) => name)).toContain("checkpoint_save");
  });

  it("serves metrics without the OpenTelemetry SDK", async () => {
    const child = spawn(process.execPath, [main, "serve", "--port", "0", "--json"], {
      cwd: project,
      env,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const exited = new Promise((done) => child.once("exit", done));
    let url = "";
    for await (const line of createInterface({ input: child.stdout })) {
      url = JSON.parse(line).url;
      break;
    }
    const headers = { authorization: `Bearer ${cairn("token").stdout.trim()}`, "content-type": "application/json" };
    const body = JSON.stringify({ project_path: "/p", summary: "x" });
    expect((await fetch(`${url}/v1/checkpoint/save`, { method: "POST", headers, body })).status).toBe(200);
    const text = await (await fetch(`${url}/metrics`, { headers })).text();
    child.kill("SIGTERM");
    await exited;
    for (const name of ["checkpoint_latency_bucket", "checkpoint_error_rate", "process_cpu_seconds_total"]) expect(text).toContain(name);
  });
});
