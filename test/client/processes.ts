import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import type { z } from "zod";
import type { JobRecord } from "../../src/client/jobs/job.ts";
import { builtCommand } from "../cli/stage.ts";
import { killProcess, removeFolder, SLOW_START } from "../support/processes.ts";

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Built once for all tests of a file. */
let built: string | undefined;

/** A home, a project and the built command; processes that are left at the end are killed. */
export function processStage() {
  built ??= builtCommand();
  const main = built;
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "cairn-local-")));
  const project = join(folder, "project");
  const home = join(folder, "home");
  for (const one of [project, home]) mkdirSync(one);
  const children = new Set<ChildProcess>();
  const clients = new Set<Client>();
  let serverToken: string | undefined;
  const env = (extra: Record<string, string> = {}) => ({
    PATH: process.env.PATH!,
    HOME: home,
    CAIRN_EMBEDDER_KIND: "none",
    CAIRN_LOG_LEVEL: "error",
    ...(serverToken && { CAIRN_API_KEY: serverToken }), // as on another machine: the server's token is not in this home
    ...extra,
  });

  function start(args: readonly string[], extra: Record<string, string> = {}): ChildProcess {
    const child = spawn(process.execPath, [main, ...args], { cwd: project, env: env(extra), stdio: ["pipe", "pipe", "pipe"] });
    children.add(child);
    child.once("close", () => children.delete(child));
    return child;
  }

  async function pipe(args: readonly string[], input: string, extra: Record<string, string> = {}): Promise<Outcome> {
    const child = start(args, extra);
    let stdout = "";
    let stderr = "";
    child.stdout!.on("data", (chunk) => (stdout += chunk));
    child.stderr!.on("data", (chunk) => (stderr += chunk));
    child.stdin!.end(input);
    const [code] = await once(child, "close");
    return { code, stdout, stderr };
  }

  return {
    folder,
    project,
    home,
    start,
    write(path: string, content: string | Uint8Array) {
      mkdirSync(join(project, path, ".."), { recursive: true });
      writeFileSync(join(project, path), content);
    },
    run: (...args: string[]) => pipe(args, ""),
    pipe,
    /** `cairn serve`, without the tree: its home is elsewhere. */
    async serve(port = 0): Promise<{ url: string; port: number; kill(): Promise<void> }> {
      const child = start(["serve", "--port", String(port), "--json", "--data-dir", join(folder, "server")]);
      const [line] = await once(createInterface(child.stdout!), "line");
      const { url, token_file } = JSON.parse(line);
      serverToken = readFileSync(token_file, "utf8").trim();
      return {
        url,
        port: Number(new URL(url).port),
        async kill() {
          child.kill("SIGKILL");
          await once(child, "close");
        },
      };
    },
    /** The token of the server that was started last. */
    token: () => serverToken!,
    async mcp(args: readonly string[] = [], extra: Record<string, string> = {}): Promise<Client> {
      const client = new Client({ name: "test", version: "1" });
      clients.add(client);
      const command = [main, "mcp", "--project", project, ...args];
      await client.connect(
        new StdioClientTransport({ command: process.execPath, args: command, cwd: project, env: env(extra), stderr: "inherit" }),
        SLOW_START,
      );
      return client;
    },
    jobs(): z.output<ReturnType<typeof JobRecord>>[] {
      const jobs = join(home, ".cairn", "jobs");
      const names = existsSync(jobs) ? readdirSync(jobs).filter((name) => name.endsWith(".json")) : [];
      return names.map((name) => JSON.parse(readFileSync(join(jobs, name), "utf8")));
    },
    async clear() {
      await Promise.all([...clients].map((client) => client.close()));
      await Promise.all([...children].map(killProcess));
      await removeFolder(folder); // a resumed job may not have ended yet
    },
  };
}

export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 20));
}

/** A port that nothing else takes while its server is away for a moment: systems give out higher ones by themselves. */
export async function lastingPort(): Promise<number> {
  for (;;) {
    const port = 15_000 + Math.floor(Math.random() * 17_000);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) =>
      server.once("error", () => resolve(false)).listen(port, "127.0.0.1", () => resolve(true)),
    );
    if (isFree) return new Promise((resolve) => server.close(() => resolve(port)));
  }
}

/** The full structured answer of a tool, which must not be an error. */
export async function call(
  client: Client,
  name: string,
  input: Record<string, unknown> = {},
  options = {},
): Promise<Record<string, unknown>> {
  const answer = await client.callTool({ name, arguments: { detail: "full", ...input } }, { ...SLOW_START, ...options });
  if (answer.isError) throw new Error(JSON.stringify(answer.content));
  return answer.structuredContent as Record<string, unknown>;
}
