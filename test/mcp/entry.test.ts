import { join } from "node:path";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { expect, it } from "vitest";
import { identifyProject } from "../../src/files/git-repository.ts";
import { SLOW_START } from "../support/processes.ts";
import { newClient, temporaryFolder } from "./connections.ts";

/** What a person writes into .mcp.json, started as an agent's client starts it: from the folder of the project. */
const entry = { command: "npx", args: ["cairn", "mcp"] };

it("works from the checkout by the entry `npx cairn mcp`", async () => {
  const folder = await temporaryFolder();
  const cwd = join(import.meta.dirname, "../..");
  const client = newClient("2025-11-25");
  const env = { ...(process.env as Record<string, string>), CAIRN_DATA_DIR: folder.path };
  await client.connect(new StdioClientTransport({ ...entry, cwd, env, stderr: "ignore" }), SLOW_START);
  const call = async (name: string, args: object) =>
    (await client.callTool({ name, arguments: { detail: "full", ...args } })).structuredContent;

  expect((await client.listTools()).tools.map(({ name }) => name)).toContain("checkpoint_save");
  const saved = (await call("checkpoint_save", { summary: "From an agent" })) as { id: string };
  expect(saved).toMatchObject({ summary: "From an agent", project_path: identifyProject(cwd).repository });
  expect(await call("checkpoint_get", { id: saved.id })).toMatchObject(saved);
  expect(await call("checkpoint_list", {})).toMatchObject({ total: 1 });
  expect(await call("checkpoint_delete", { id: saved.id })).toMatchObject({ deleted: true });
  await client.close();
  await folder.remove();
});
