import type { Launch } from "./entries.ts";

export interface ClientText {
  readonly client: string;
  readonly where: string;
  readonly text: string;
}

/**
 * Returns the entries to paste for clients that do not read `.mcp.json`. None names a project: a file for all projects must serve all of
 * them, and a file of one project is used in its folder. VS Code and Cursor do not start servers there, so they get a variable.
 */
export function otherClients({ command, args }: Launch): ClientText[] {
  const plain = [...args, "mcp"];
  const inWorkspace = [...plain, "--project", WORKSPACE];
  const servers = (all: readonly string[]) => JSON.stringify({ mcpServers: { cairn: { command, args: all } } });
  const toml = (words: readonly string[]) => words.map((word) => JSON.stringify(word)).join(", ");
  return [
    {
      client: "Codex",
      where: "~/.codex/config.toml",
      text: `[mcp_servers.cairn]\ncommand = ${JSON.stringify(command)}\nargs = [${toml(plain)}]`,
    },
    { client: "Gemini CLI", where: "~/.gemini/settings.json", text: servers(plain) },
    {
      client: "opencode",
      where: "~/.config/opencode/opencode.json",
      text: JSON.stringify({ mcp: { cairn: { type: "local", command: [command, ...plain] } } }),
    },
    { client: "Cursor", where: ".cursor/mcp.json in the project", text: servers(inWorkspace) },
    {
      client: "VS Code",
      where: ".vscode/mcp.json in the project",
      text: JSON.stringify({ servers: { cairn: { type: "stdio", command, args: inWorkspace } } }),
    },
    { client: "Windsurf", where: "~/.codeium/windsurf/mcp_config.json", text: servers(plain) },
    { client: "Claude Desktop", where: "claude_desktop_config.json (Settings, Developer, Edit Config)", text: servers(plain) },
  ];
}

/** Cursor and VS Code replace it by the folder that is open. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of the client
const WORKSPACE = "${workspaceFolder}";
