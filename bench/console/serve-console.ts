import { servedCodeIndex } from "../../src/client/jobs/served-index.ts";
import { serve } from "../../src/http/serve.ts";
import type { Cairn } from "../../src/index.ts";
import { mcpHttpHandler } from "../../src/mcp/http.ts";
import { mcpServerFactory } from "../../src/mcp/server.ts";
import { operations } from "../../src/operations/list.ts";

const TOKEN = `cairn_local_${"0".repeat(43)}`;

/** Serves the console over a store, with MCP. Returns a function that makes links which sign a browser in. */
export async function serveConsole(cairn: Cairn) {
  const mcp = mcpHttpHandler(mcpServerFactory({ cairn, operations, toolsets: ["core", "code", "knowledge"] }));
  const mount = { "/mcp": (request: Request, { caller }: { caller: Parameters<typeof mcp.fetch>[1] }) => mcp.fetch(request, caller) };
  const all = [...operations, servedCodeIndex]; // the console shows what it shows in cairn ui
  const server = await serve({ cairn, operations: all, port: 0, localToken: async () => TOKEN, rateLimit: false, mount });
  return {
    url: server.url,
    async link(hash: string): Promise<string> {
      const answer = await fetch(`${server.url}/session/code`, { method: "POST", headers: { authorization: `Bearer ${TOKEN}` } });
      const { code } = (await answer.json()) as { code: string };
      return `${server.url}/${hash}${hash.includes("?") ? "&" : "?"}code=${code}`;
    },
    async close(): Promise<void> {
      await server.close();
      await mcp.close();
    },
  };
}
