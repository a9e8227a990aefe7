import { z } from "zod";
import { CairnError } from "../model/errors.ts";
import { RECENT_CALLS_MAX } from "../model/recent-call.ts";
import { operation } from "../operations/operation.ts";
import { text } from "../operations/schemas.ts";

export const callList = operation({
  name: "call_list",
  summary: "List the last calls over HTTP and MCP that this server answered, with duration and error.",
  description: "Each server process remembers its own last 500 calls, without their input. They end with the process.",
  input: z.strictObject({
    limit: z.int().min(1).max(RECENT_CALLS_MAX).default(50),
    failed: z.boolean().default(false).describe("Only calls that failed."),
    operation: text(100, 1).optional().describe("Only calls of this operation."),
  }),
  output: z.object({
    calls: z.array(
      z.object({
        at: z.string(),
        operation: z.string(),
        edge: z.enum(["http", "mcp"]),
        duration_ms: z.number(),
        error: z.string().optional(),
        key_id: z.string().optional().describe("Absent for the local user."),
      }),
    ),
  }),
  access: "admin",
  toolset: "admin",
  cli: { hidden: true },
  mcp: { rows: "calls" },
  render: ({ calls }) =>
    calls
      .map(({ at, operation: name, edge, duration_ms, error }) => `${at}  ${edge}  ${name}  ${duration_ms} ms${error ? `  ${error}` : ""}`)
      .join("\n") || "No calls yet.",
  async run(cairn, { limit, failed, operation: name }, { allProjects }) {
    if (!allProjects) throw new CairnError("forbidden", "Calls of all projects are listed. Use a key for all projects.");
    const fits = cairn.calls
      .recent()
      .filter((call) => (!failed || call.error !== undefined) && (name === undefined || call.operation === name));
    return { calls: fits.slice(0, limit) };
  },
});
