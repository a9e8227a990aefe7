// Servers that answer every call with the same small object: what the transport itself costs. They use the packages that Cairn uses.
import { serve } from "@hono/node-server";
import { Server } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { Hono } from "hono";

const ANSWER = { id: "00000000-0000-4000-8000-000000000000" };

if (process.argv[2] === "mcp") {
  const server = new Server({ name: "empty", version: "1" }, { capabilities: { tools: {} } });
  const tools = [{ name: "empty", inputSchema: { type: "object" } }];
  server.setRequestHandler("tools/list", () => ({ tools }));
  server.setRequestHandler("tools/call", () => ({ content: [{ type: "text", text: ANSWER.id }], structuredContent: ANSWER }));
  await server.connect(new StdioServerTransport());
} else {
  const app = new Hono();
  app.post("/empty", async (context) => context.json({ ...(await context.req.json()), ...ANSWER }));
  serve({ fetch: app.fetch, hostname: "127.0.0.1", port: 0 }, ({ port }) => {
    process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}` })}\n`);
  });
}
