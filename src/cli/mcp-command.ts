import { clientFindings } from "../client/client-findings.ts";
import { watchInThread } from "../client/jobs/launch.ts";
import { openClient } from "../client/open-client.ts";
import { forceExitAfterGrace } from "../scheduling/force-exit.ts";
import type { Command } from "./command.ts";

/** `cairn mcp`: the MCP server on stdin and stdout that an MCP client starts. It ends with its parent. */
export const mcpCommand: Command = {
  path: ["mcp"],
  summary: "Serve MCP on stdin and stdout. MCP clients start this command.",
  description: 'In .mcp.json: { "mcpServers": { "cairn": { "command": "npx", "args": ["-y", "cairn-memory", "mcp"] } } }',
  flags: [
    {
      name: "toolsets",
      kind: "list",
      description: "Groups of tools: core, code, knowledge, runs, systems, admin.",
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
      mayLead: true,
      findings: clientFindings(loaded, { home: call.host.home, tree: defaultProject }),
    });
    const watched = settings.code.watch ? watchInThread({ config: settings, watch: defaultProject }) : undefined;
    // Resumes a job that a killed process left unfinished.
    if (!watched)
      cairn.indexJobs?.resume(defaultProject).catch((error: unknown) => log.warn({ err: error }, "The last index could not be resumed."));
    await runMcpStdio({
      cairn,
      operations,
      toolsets: settings.mcp.toolsets,
      defaultProject,
      log,
      onEnded: forceExitAfterGrace, // the end of the input sends no signal, but must end the process as well
      onError: (error) => log.warn({ err: error }, "The MCP connection had an error."),
    });
    watched?.stop();
    await watched?.ended;
    await telemetry.close();
  },
};
