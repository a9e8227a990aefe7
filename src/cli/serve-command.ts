import { once } from "node:events";
import type { LoadedConfig } from "../config/load.ts";
import { shellWord } from "../text/shell-word.ts";
import type { Command } from "./command.ts";
import { print, printJson } from "./host.ts";
import { startServer } from "./server.ts";
import { styleFor } from "./terminal/style.ts";

/** `cairn serve`: serves the console, the HTTP API and MCP over HTTP until stopped. */
export const serveCommand: Command = {
  path: ["serve"],
  summary: "Serve the console, the HTTP API and MCP over HTTP, until stopped.",
  description:
    "Every call needs a credential: the local token (cairn token), or an API key for other users and machines (cairn key create).",
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
      description: "Port to listen on; 0 for any free port.",
      fallback: 7483,
      placeholder: "number",
      setting: "http.port",
    },
  ],
  positional: [],
  examples: ["cairn serve", "cairn serve --port 0 --json", "cairn serve --set http.trusted_proxies=127.0.0.1"],
  usesProject: true,
  async run({ host, json, config }) {
    const server = await startServer(config().config);
    try {
      const { url, tokenFile } = server;
      if (json) printJson(host, { url, console_url: `${url}/`, mcp_url: `${url}/mcp`, docs_url: `${url}/docs`, token_file: tokenFile });
      else {
        const style = styleFor(host.stdout, host.env);
        print(
          host,
          [
            `Cairn is serving on ${style.bold(url)}\n`,
            `  Console   ${url}/ (cairn ui opens it and signs you in)`,
            `  API page  ${url}/docs`,
            `  MCP       ${url}/mcp`,
            `  Call it   curl -H "Authorization: Bearer $(${tokenCommandLine(config())})" ${url}/v1/key/list\n`,
            "Stop with Ctrl-C.",
          ].join("\n"),
        );
      }
      if (!host.signal.aborted) await once(host.signal, "abort");
    } finally {
      await server.close();
    }
  },
};

/** Returns the command that prints the token of this server, with --data-dir if that flag was given. */
function tokenCommandLine({ config, settings }: LoadedConfig): string {
  const isFlag = settings.some(({ setting, origin }) => setting.key === "data_dir" && origin.source === "flag");
  return isFlag ? `cairn token --data-dir ${shellWord(config.dataDir)}` : "cairn token";
}
