// A server with the fixtures of the MCP conformance suite, on the same transport stack as the product: our guards, our
// sessions, our body limits. It is never part of the product. Prints its URL and serves until its input ends.
import { serve } from "@hono/node-server";
import { McpServer } from "@modelcontextprotocol/server";
import { mcpHttpHandler } from "../../dist/mcp/http.js";
import { LOCAL_CALLER } from "../../dist/operations/invoke.js";
import { registerPrompts, registerResources } from "./prompts-and-resources.mjs";
import { registerStatefulTools, requestState } from "./stateful-tools.mjs";
import { registerTools } from "./tools.mjs";

function factory({ era }) {
  const capabilities = {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { subscribe: true, listChanged: true },
    logging: {},
    completions: {},
  };
  const server = new McpServer({ name: "cairn-conformance", version: "0.0.0" }, { capabilities, requestState });
  registerTools(server, () => handler.notify);
  registerStatefulTools(server);
  registerPrompts(server);
  registerResources(server, era);
  return server;
}

const handler = mcpHttpHandler(factory, { onError: (error) => process.env.VERBOSE && console.error(error.message) });
const http = serve({ fetch: (request) => handler.fetch(request, LOCAL_CALLER), hostname: "127.0.0.1", port: 0 }, ({ port }) =>
  console.log(`http://127.0.0.1:${port}/mcp`),
);
process.stdin.on("end", () => {
  http.close();
  http.closeAllConnections();
});
process.stdin.resume();
