import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterEach, beforeEach, expect, it } from "vitest";
import { builtCommand } from "../cli/stage.ts";
import { removeFolder, SLOW_START } from "../support/processes.ts";

let project: string;
let main: string;
beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), "cairn-knowledge-mcp-"));
  main = builtCommand();
});
afterEach(() => removeFolder(project));

/** A session of its own, in a process of its own. */
async function session() {
  const client = new Client({ name: "test", version: "1" });
  const env = { PATH: process.env.PATH ?? "", HOME: project, CAIRN_DATA_DIR: join(project, "data"), CAIRN_EMBEDDER_KIND: "none" };
  const args = [main, "mcp", "--project", project, "--toolsets", "knowledge"];
  const transport = new StdioClientTransport({ command: process.execPath, args, env, stderr: "ignore" });
  await client.connect(transport, SLOW_START);
  const call = async (name: string, input: Record<string, unknown>) => {
    const answer = await client.callTool({ name, arguments: { detail: "full", ...input } });
    expect(answer.isError, JSON.stringify(answer.content)).not.toBe(true);
    // biome-ignore lint/suspicious/noExplicitAny: answers are looked into by the test, which fails where a field is missing
    return answer.structuredContent as any;
  };
  return { client, call, kill: () => process.kill(transport.pid!, "SIGKILL") };
}

it("stores one agent's knowledge for the next: a killed session's remediation is found, used and rated", async () => {
  const first = await session();
  const error = "TypeError: Cannot read properties of undefined (reading 'id')\n    at load (/srv/app/db.ts:10:2)";
  const { id } = await first.call("knowledge_save", {
    kind: "remediation",
    question: error,
    answer: "Wait for connect().",
    scope: "shared",
  });
  first.kill();

  const second = await session();
  const asked = "TypeError: Cannot read properties of undefined (reading 'name')\n    at save (/home/x/app.ts:99:1)";
  const { results } = await second.call("knowledge_search", { query: asked });
  expect(results[0]).toMatchObject({
    knowledge: { id, answer: "Wait for connect()." },
    same_error: true,
    confidence: "high",
    scope: "shared",
  });
  expect(await second.call("knowledge_feedback", { id, scope: "shared", success: true })).toMatchObject({ usage_count: 1, successes: 1 });
  expect((await second.call("knowledge_list", { scope: "shared" })).total).toBe(1);
  await second.client.close();
});

it("adds its tools to the core tools", async () => {
  const { client } = await session();
  const { tools } = await client.listTools();
  const names = tools.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(["checkpoint_save", "code_search", "knowledge_search"]));
  expect(names.filter((name) => name.startsWith("knowledge_"))).toEqual([
    "knowledge_save",
    "knowledge_search",
    "knowledge_get",
    "knowledge_list",
    "knowledge_update",
    "knowledge_delete",
    "knowledge_feedback",
    "knowledge_restore",
    "knowledge_purge",
  ]);
  await client.close();
});
