import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { withHooks } from "../../src/cli/init/entries.ts";
import { otherClients } from "../../src/cli/init/other-clients.ts";

const root = resolve(import.meta.dirname, "../..");
const read = (file: string) => readFileSync(join(root, file), "utf8");
const under = (folder: string, ending: RegExp) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => ending.test(file))
    .map((file) => join(folder, file));
const pages = ["README.md", "CONTRIBUTING.md", "AGENTS.md", ...under("docs", /\.md$/)];
const texts = [...pages, ...under("src", /\.ts$/), ...under("plugins", /\.(json|md)$/), ...under("examples", /\.(ts|md)$/)];
const npx = { command: "npx", args: ["-y", "cairn-memory"] };

/** Every JSON block of the pages, and the entries that the command line prints. */
const blocks = [
  ...pages.flatMap((page) => [...read(page).matchAll(/```json\n([\s\S]*?)```/g)].map(([, json]) => ({ from: page, json: json! }))),
  ...otherClients(npx).flatMap(({ client, text }) => (text.startsWith("{") ? [{ from: client, json: text }] : [])),
];

/** Returns the command lines of all MCP servers in a configuration, whatever the client calls them. */
function commandLines(config: Record<string, Record<string, Record<string, unknown>>>): string[][] {
  const servers = Object.values({ ...config.mcpServers, ...config.servers, ...config.mcp });
  return servers.flatMap(({ command, args = [] }) => (command === undefined ? [] : [[command, args].flat(2) as string[]]));
}

describe("every snippet", () => {
  it("starts Cairn by the name of its package", () => {
    const wrong = texts.flatMap((file) =>
      [...read(file).matchAll(/\bnpx (?:-\S+ )*cairn(?!-memory)\b.*/g)]
        .filter(([line]) => !line.includes("is another package"))
        .map(([line]) => `${file}: ${line}`),
    );
    expect(wrong).toEqual([]);
    expect(texts.filter((file) => /"npx",\s*"args":\s*\[\s*"cairn/.test(read(file)))).toEqual([]);
  });

  it("is valid JSON whose server is npx -y cairn-memory mcp", () => {
    const lines = blocks.flatMap(({ json }) => commandLines(parsed(json)));
    expect(lines.length).toBeGreaterThan(6);
    for (const line of lines) expect(line.slice(0, 4)).toEqual(["npx", "-y", "cairn-memory", "mcp"]);
  });

  it("does not pin a project of somebody's machine", () => {
    const lines = blocks.flatMap(({ json }) => commandLines(parsed(json)));
    for (const line of lines)
      if (line.includes("--project")) expect(line[line.indexOf("--project") + 1]).toBe(["$", "{workspaceFolder}"].join(""));
    expect(otherClients(npx).find(({ client }) => client === "Codex")!.text).toBe(
      '[mcp_servers.cairn]\ncommand = "npx"\nargs = ["-y", "cairn-memory", "mcp"]',
    );
  });

  it("exists for every client, in the README and in the guide", () => {
    for (const page of ["README.md", "docs/install.md"]) {
      const text = read(page);
      for (const client of ["Claude Code", "Codex", "Gemini CLI", "Cursor", "VS Code", "Windsurf", "opencode"])
        expect(text).toContain(client);
      expect(text).toContain("claude mcp add --scope user cairn -- npx -y cairn-memory mcp");
      expect(text).toContain("codex mcp add cairn -- npx -y cairn-memory mcp");
      expect(text).toContain("gemini mcp add --scope user cairn npx -y cairn-memory mcp");
      expect(text).toMatch(/not (?:on npm|published)/);
    }
  });
});

describe("the README", () => {
  it("has the two commands, each on one line", () => {
    const lines = read("README.md").split("\n");
    expect(lines).toContain("npm install && npm start");
    expect(lines).toContain("npm install && npm test");
  });

  it("links to files that exist and are part of the package or the repository", () => {
    const links = [...read("README.md").matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, path]) => path!);
    expect(links.length).toBeGreaterThan(10);
    for (const link of links) expect(() => read(link), link).not.toThrow();
  });
});

describe("the plugin for Claude Code", () => {
  const json = (file: string) => JSON.parse(read(file));
  const { version } = json("package.json");

  it("is listed by the marketplace file with the version of the package", () => {
    const { plugins } = json(".claude-plugin/marketplace.json");
    expect(plugins).toEqual([expect.objectContaining({ name: "cairn", source: "./plugins/cairn", version })]);
    expect(json("plugins/cairn/.claude-plugin/plugin.json")).toMatchObject({ name: "cairn", version });
  });

  it("has the MCP server and the hooks that cairn init writes", () => {
    expect(json("plugins/cairn/.mcp.json")).toEqual({ mcpServers: { cairn: { command: "npx", args: ["-y", "cairn-memory", "mcp"] } } });
    expect(json("plugins/cairn/hooks/hooks.json").hooks, "Run npm run docs.").toEqual(withHooks({}, npx).hooks);
  });

  it.each(["resume", "checkpoint"])("has the command %s, which names a tool of Cairn", (command) => {
    const text = read(`plugins/cairn/commands/${command}.md`);
    expect(text).toMatch(/^---\ndescription: .+\n/);
    expect(text).toMatch(/`checkpoint_(resume|save)`/);
  });
});

function parsed(json: string): Parameters<typeof commandLines>[0] {
  try {
    return JSON.parse(json);
  } catch {
    return {}; // an answer with an ellipsis; the snippets of servers are counted
  }
}
