import { clientFindings } from "../client/client-findings.ts";
import { watchInThread } from "../client/jobs/launch.ts";
import { openClient } from "../client/open-client.ts";
import { forceExitAfterGrace } from "../scheduling/force-exit.ts";
import type { Command } from "./command.ts";

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
  async run(call) {
    const loaded = call.config();
    const { config: settings } = loaded;
    const { tree: defaultProject } = call.project();
    const [{ runMcpStdio }, { watch }] = await Promise.all([import("../mcp/main.ts"), import("./watch.ts")]);
    const { log, telemetry } = await watch(settings);
    const { cairn, operations } = await openClient(settings, {
      jobs: "thread",
      findings: clientFindings(loaded, { home: call.host.home, tree: defaultProject }),
    });
    const watched = settings.code.watch ? watchInThread({ config: settings, watch: defaultProject }) : undefined;
    // A job that a killed process left behind goes on by itself.
    if (!watched)
      cairn.indexJobs?.resume(defaultProject).catch((error: unknown) => log.warn({ err: error }, "The last index could not be resumed."));
    await runMcpStdio({
      cairn,
      operations,
      toolsets: settings.mcp.toolsets,
      defaultProject,
      log,
      onEnded: forceExitAfterGrace, // the end of the input is no signal, and must end the process all the same
      onError: (error) => log.warn({ err: error }, "The MCP connection had an error."),
    });
    watched?.stop();
    await watched?.ended;
    await telemetry.close();
  },
};
