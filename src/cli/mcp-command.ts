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
  async run({ project, config }) {
    const { config: settings } = config();
    const defaultProject = project();
    const [{ runMcpStdio }, { operations }, { watch }] = await Promise.all([
      import("../mcp/main.ts"),
      import("../operations.ts"),
      import("./watch.ts"),
    ]);
    const { log, telemetry } = await watch(settings);
    await runMcpStdio({
      cairn: await openFromConfig(settings),
      operations,
      toolsets: settings.mcp.toolsets,
      defaultProject,
      log,
      onError: (error) => log.warn({ err: error }, "The MCP connection had an error."),
    });
    await telemetry.close();
  },
};
