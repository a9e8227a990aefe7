import { once } from "node:events";
import type { Command } from "./command.ts";
import { print, printJson } from "./host.ts";
import { startServer } from "./server.ts";
import { styleFor } from "./terminal/style.ts";

/** `cairn serve`: HTTP API, API page and MCP over HTTP, until it is stopped. */
export const serveCommand: Command = {
  path: ["serve"],
  summary: "Serve the HTTP API, its page, and MCP over HTTP, until stopped.",
  description: "Only this machine is let in unless you say otherwise; other addresses need API keys (cairn key create).",
  flags: [
    {
      name: "host",
      kind: "text",
      description: "Address to listen on.",
      fallback: "127.0.0.1",
      placeholder: "address",
      setting: "http.host",
    },
    {
      name: "port",
      kind: "text",
      description: "Port to listen on; 0 takes any free one.",
      fallback: 7483,
      placeholder: "number",
      setting: "http.port",
    },
  ],
  positional: [],
  examples: ["cairn serve", "cairn serve --port 0 --json", "cairn serve --host 0.0.0.0 --set http.allowed_hosts=memory.example.org"],
  usesProject: true,
  async run({ host, json, config }) {
    const server = await startServer(config().config);
    try {
      if (json) printJson(host, { url: server.url, mcp_url: `${server.url}/mcp`, docs_url: `${server.url}/docs` });
      else {
        const style = styleFor(host.stdout, host.env);
        print(
          host,
          `Cairn is serving on ${style.bold(server.url)}\n\n  API page  ${server.url}/docs\n  MCP       ${server.url}/mcp\n\nStop with Ctrl-C.`,
        );
      }
      if (!host.signal.aborted) await once(host.signal, "abort");
    } finally {
      await server.close();
    }
  },
};
