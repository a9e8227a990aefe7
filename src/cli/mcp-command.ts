import type { Command } from "./command.ts";
import { openFromConfig } from "./open-from-config.ts";

/** `cairn mcp`: what an agent's client starts. It speaks MCP on stdin and stdout and ends with its parent. */
export const mcpCommand: Command = {
  path: ["mcp"],
  summary: "Serve MCP on stdin and stdout, for an agent's client to start.",
  description: 'In .mcp.json: { "mcpServers": { "cairn": { "command": "npx", "args": ["cairn", "mcp"] } } }',
  flags: [
    {
      name: "toolsets",
      kind: "list",
      description: "Groups of tools to offer: core, code, knowledge, runs, systems, admin.",
      fallback: ["core"],
      setting: "mcp.toolsets",
    },
  ],
  positional: [],
  examples: ["cairn mcp", "cairn mcp --project ~/app --toolsets core --toolsets code"],
  usesProject: true,
  async run({ host, project, config }) {
    const { config: settings } = config();
    const defaultProject = project();
    const [{ runMcpStdio }, { operations }] = await Promise.all([import("../mcp/main.ts"), import("../operations.ts")]);
    const say = (error: Error) => void host.stderr.write(`cairn mcp: ${error.message}\n`);
    await runMcpStdio({
      cairn: await openFromConfig(settings),
      operations,
      toolsets: settings.mcp.toolsets,
      defaultProject,
      onError: say,
    });
  },
};
