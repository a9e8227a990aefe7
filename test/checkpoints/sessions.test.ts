import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterAll, expect, it, vi } from "vitest";
import { builtCommand } from "../cli/stage.ts";
import { removeFolder, SLOW_START } from "../support/processes.ts";

const main = builtCommand();
const folder = mkdtempSync(join(tmpdir(), "cairn-sessions-"));
afterAll(() => removeFolder(folder));

/** An agent's session: a client and the `cairn mcp` that it started, with the local model. */
async function session(project: string) {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [main, "mcp", "--project", project],
    env: { PATH: process.env.PATH ?? "", HOME: folder, CAIRN_LOG_LEVEL: "silent" },
    stderr: "ignore",
  });
  const client = new Client({ name: "test", version: "1" });
  await client.connect(transport, SLOW_START);
  return {
    pid: transport.pid!,
    client,
    // biome-ignore lint/suspicious/noExplicitAny: answers are looked at field by field
    async call(name: string, input: Record<string, unknown> = {}): Promise<any> {
      const answer = await client.callTool({ name, arguments: { detail: "full", ...input } });
      if (answer.isError) throw new Error(JSON.stringify(answer.content));
      return answer.structuredContent;
    },
  };
}

it("a session saves and is killed; a new one finds it by semantic search and resumes it at each level", async () => {
  const first = await session(folder);
  const saved = await first.call("checkpoint_save", {
    summary: "auth specs are red since we rotate JWTs",
    description: "The refresh path signs with the old key.",
    context: { branch: "rotate-keys" },
  });
  for (const summary of ["add dark mode to the settings page", "bump the Docker base image", "the CSV export drops the last row"])
    await first.call("checkpoint_save", { summary });
  const gone = new Promise<void>((resolve) => {
    first.client.onclose = () => resolve();
  });
  process.kill(first.pid, "SIGKILL");
  await gone;

  const second = await session(folder);
  // No word of the question stands in the checkpoint.
  const question = { query: "session tests fail after token refresh change", mode: "semantic" };
  const { results, model } = await vi.waitFor(async () => {
    const answer = await second.call("checkpoint_search", question); // refused where the machine is too busy to load the model in time
    expect(answer.degraded).toEqual([]);
    return answer;
  }, 120_000);
  expect(results[0].checkpoint.id).toBe(saved.id);
  expect(model).toBeTypeOf("string");
  const levels = await Promise.all(
    ["summary", "context", "full"].map((level) => second.call("checkpoint_resume", { id: saved.id, level })),
  );
  expect(levels.map(({ text }) => [/rotate JWTs/.test(text), /rotate-keys/.test(text), /old key/.test(text)])).toEqual([
    [true, false, false],
    [true, true, false],
    [true, true, true],
  ]);
  await second.client.close();
});

it("two sessions at once on one project see each other's checkpoints, and each is there once", async () => {
  const project = mkdtempSync(join(folder, "p-"));
  const sessions = await Promise.all([session(project), session(project)]);
  await Promise.all(
    sessions.flatMap(({ call }, who) =>
      Array.from({ length: 8 }, (_, index) => call("checkpoint_save", { summary: `Step ${index} of session ${who}` })),
    ),
  );
  for (const [who, { call }] of sessions.entries()) {
    const { total, checkpoints } = await call("checkpoint_list", { limit: 100 });
    expect(total).toBe(16);
    expect(new Set(checkpoints.map(({ summary }: { summary: string }) => summary)).size).toBe(16);
    const other = 1 - who;
    const { results } = await call("checkpoint_search", { query: `Step 3 of session ${other}`, top_k: 3 });
    expect(results.map(({ checkpoint }: { checkpoint: { summary: string } }) => checkpoint.summary)).toContain(
      `Step 3 of session ${other}`,
    );
  }
  await Promise.all(sessions.map(({ client }) => client.close()));
});
