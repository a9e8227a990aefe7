import { ApiError, send } from "./call.ts";

export interface AgentAnswer {
  /** The text that the model receives. */
  readonly text: string;
}

/** Calls an MCP tool as an agent does, and returns what its model receives: clients pass on the structured content if there is one. */
export async function askAsAgent(tool: string, input: Readonly<Record<string, unknown>>, signal?: AbortSignal): Promise<AgentAnswer> {
  const body = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: tool, arguments: input } };
  const response = await send("POST", "/mcp", body, signal, { accept: "application/json, text/event-stream" });
  const answer = await response.text();
  // An event stream has the response as the data of its only event.
  const { result, error } = JSON.parse(/^data: (.*)$/m.exec(answer)?.[1] ?? answer);
  if (error) throw new ApiError(response.status, "internal", error.message ?? "The MCP server refused the call.");
  const text = result.structuredContent
    ? JSON.stringify(result.structuredContent, null, 1)
    : result.content.map(({ text }: { text: string }) => text).join("\n");
  return { text };
}
