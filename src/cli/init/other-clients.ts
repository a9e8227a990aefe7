import type { Launch } from "./entries.ts";

export interface ClientText {
  readonly client: string;
  readonly where: string;
  readonly text: string;
}

/** Returns the entries to paste for clients whose settings are outside the project. They start Cairn in another folder, so the entries name the project. */
export function otherClients({ command, args }: Launch, project: string): ClientText[] {
  const all = [...args, "mcp", "--project", project];
  const servers = JSON.stringify({ mcpServers: { cairn: { command, args: all } } }, null, 2);
  const toml = (words: readonly string[]) => words.map((word) => JSON.stringify(word)).join(", ");
  return [
    { client: "Claude Desktop", where: "claude_desktop_config.json (Settings, Developer, Edit Config)", text: servers },
    { client: "Cursor", where: ".cursor/mcp.json", text: servers },
    { client: "Windsurf, Gemini CLI", where: "~/.codeium/windsurf/mcp_config.json, .gemini/settings.json", text: servers },
    {
      client: "VS Code",
      where: ".vscode/mcp.json",
      text: JSON.stringify({ servers: { cairn: { type: "stdio", command, args: all } } }, null, 2),
    },
    {
      client: "Codex",
      where: "~/.codex/config.toml",
      text: `[mcp_servers.cairn]\ncommand = ${JSON.stringify(command)}\nargs = [${toml(all)}]`,
    },
  ];
}
