import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { builtCommand, stage } from "../cli/stage.ts";
import { isAlive, removeFolder, SLOW_START } from "../support/processes.ts";

let main: string;
let s: ReturnType<typeof stage>;
const clients: Client[] = [];
beforeAll(() => {
  main = builtCommand();
});
beforeEach(() => {
  s = stage();
});
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()));
  await removeFolder(s.folder);
});

const dataDir = () => join(s.home, ".cairn");
const leases = () =>
  existsSync(join(dataDir(), "embedders")) ? readdirSync(join(dataDir(), "embedders")).filter((file) => file.endsWith(".lease")) : [];
const leaderPid = () => JSON.parse(readFileSync(join(dataDir(), "embedders", leases()[0]!), "utf8")).pid as number;

async function session(env: Record<string, string>) {
  const client = new Client({ name: "test", version: "1" });
  const transport = new StdioClientTransport({
    command: main,
    args: ["mcp", "--project", s.project],
    env: { PATH: process.env.PATH!, HOME: s.home, CAIRN_LOG_LEVEL: "error", ...env },
    stderr: "inherit",
  });
  await client.connect(transport, SLOW_START);
  clients.push(client);
  const call = async (name: string, args: Record<string, unknown>) => {
    const answer = await client.callTool({ name, arguments: { detail: "full", ...args } }, SLOW_START);
    expect(answer.isError, JSON.stringify(answer.content)).toBeFalsy();
    return answer.structuredContent as { results?: { summary: string }[]; degraded?: string };
  };
  return {
    pid: transport.pid!,
    save: (summary: string) => call("checkpoint_save", { summary }),
    search: async (query: string) => (await call("checkpoint_search", { query, mode: "semantic" })).results!.map(({ summary }) => summary),
  };
}

describe("several agents on one machine", () => {
  it("share one MiniLM process, and the doctor says which process has it", async () => {
    const sessions = await Promise.all(Array.from({ length: 3 }, () => session({ CAIRN_EMBEDDER_KIND: "minilm" })));
    await Promise.all(sessions.map((one, index) => one.save(`The kiln number ${index} overheats above 1,200 degrees`)));
    // On a slow machine a save may return before its vector exists; a search then makes it.
    for (const one of sessions) await expect.poll(() => one.search("ceramics oven gets too hot")).toHaveLength(3);
    expect(sessions.map(({ pid }) => pid)).toContain(leaderPid());
    const { stdout } = await s.cairn(["doctor", "--quick", "--json"]);
    expect(JSON.parse(stdout).findings).toContainEqual(
      expect.objectContaining({
        severity: "note",
        subject: "all-MiniLM-L6-v2",
        message: expect.stringContaining(`Process ${leaderPid()} `),
      }),
    );
    if (process.platform !== "linux") return; // only /proc lists children
    const models = sessions.flatMap(({ pid }) => childrenOf(pid).filter((child) => commandOf(child).includes("minilm-process")));
    // One, and more only on a machine so slow that a session took its leader for hung.
    expect(models.length).toBeLessThan(sessions.length);
  });

  it("lose no save when the process that embeds is killed, and another takes over", async () => {
    const sessions = await Promise.all(Array.from({ length: 3 }, () => session({ CAIRN_EMBEDDER_KIND: "static" })));
    for (const [index, one] of sessions.entries()) await one.save(`first save of ${index}`);
    const killed = leaderPid();
    const others = sessions.filter(({ pid }) => pid !== killed);
    const saves = others.flatMap((one, index) =>
      Array.from({ length: 20 }, (_, number) => one.save(`save ${number} of ${index} in flight`)),
    );
    process.kill(killed, "SIGKILL");
    await Promise.all(saves);
    await expect.poll(() => isAlive(killed)).toBe(false);
    for (const one of others) expect(await one.search("save in flight")).not.toEqual([]);
    expect(others.map(({ pid }) => pid)).toContain(leaderPid());
    const listed = async () => {
      const { stdout } = await s.cairn(["checkpoint", "list", "--limit", "100", "--json"]);
      const { checkpoints } = JSON.parse(stdout) as { checkpoints: { embedding_pending?: boolean }[] };
      return { all: checkpoints.length, pending: checkpoints.filter(({ embedding_pending }) => embedding_pending).length };
    };
    await expect.poll(listed).toEqual({ all: 3 + saves.length, pending: 0 });
  });

  it("ask the process that embeds from a short command, which never embeds for others", async () => {
    const env = { CAIRN_EMBEDDER_KIND: "static" };
    await s.cairn(["checkpoint", "save", "from a command"], { env });
    expect(leases()).toEqual([]);
    const agent = await session(env);
    await agent.save("from an agent");
    const { stdout } = await s.cairn(["checkpoint", "search", "command", "--mode", "semantic", "--json"], { env });
    expect(JSON.parse(stdout).results.length).toBeGreaterThan(0);
    expect(leaderPid()).toBe(agent.pid);
  });

  it("embed for themselves with embedder.share false, and clean up at the end", async () => {
    const alone = await session({ CAIRN_EMBEDDER_KIND: "static", CAIRN_EMBEDDER_SHARE: "false" });
    await alone.save("alone");
    expect(leases()).toEqual([]);
    const shared = await session({ CAIRN_EMBEDDER_KIND: "static" });
    await shared.save("shared");
    expect(leaderPid()).toBe(shared.pid);
    await clients.pop()!.close();
    await expect.poll(() => readdirSync(join(dataDir(), "embedders"))).toEqual([]);
  });
});

function childrenOf(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").split(" ").filter(Boolean).map(Number),
  );
}

function commandOf(pid: number): string {
  return readFileSync(`/proc/${pid}/cmdline`, "utf8");
}
