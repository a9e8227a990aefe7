import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { builtCommand } from "../cli/stage.ts";
import { countTokens } from "../support/o200k.ts";
import { removeFolder } from "../support/processes.ts";
import { type ClientPackage, installClient } from "./client-programs.ts";
import { type Body, toolCallingModel } from "./tool-calling-model.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "cairn-clients-")));
afterAll(() => removeFolder(folder));

const SCRIPT = [
  { tool: "checkpoint_save", input: { summary: "Parser done, lexer next", description: "Start in lex().", tags: ["parser"] } },
  { tool: "checkpoint_search", input: { query: "what comes after the parser" } },
  { tool: "checkpoint_resume", input: {} },
];

interface Run {
  readonly cwd: string;
  readonly home: string;
  readonly url: string;
  readonly server: { readonly command: string; readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> };
}

interface Client {
  readonly name: ClientPackage;
  /** Writes the configuration and returns the arguments and the environment. */
  readonly prepare: (run: Run) => { readonly args: readonly string[]; readonly env?: Readonly<Record<string, string>> };
  /** The names of all tools in a request. */
  readonly toolsIn: (body: Body) => readonly string[];
  /** The tool results in a request, as the model reads them. */
  readonly resultsIn: (body: Body) => readonly string[];
}

const PROMPT = "Save, search and resume.";
const textOf = (content: Body): string => (typeof content === "string" ? content : content.map(({ text }: Body) => text ?? "").join("\n"));

/** Without these, Claude Code sends its first request without the tools of a server that takes more than five seconds to start. */
const WAIT_FOR_SERVER = { MCP_TIMEOUT: "120000", MCP_CONNECT_TIMEOUT_MS: "120000", MCP_CONNECTION_NONBLOCKING: "0" };

const TESTED: readonly Client[] = [
  {
    name: "@anthropic-ai/claude-code",
    prepare({ home, url, server }) {
      const config = join(home, "mcp.json");
      writeFileSync(config, JSON.stringify({ mcpServers: { cairn: { type: "stdio", ...server } } }));
      return {
        args: ["-p", PROMPT, "--mcp-config", config, "--strict-mcp-config", "--allowedTools", "mcp__cairn"],
        env: { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "mock", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", ...WAIT_FOR_SERVER },
      };
    },
    toolsIn: ({ tools }) => tools.map(({ name }: Body) => name),
    resultsIn: ({ messages }) =>
      messages.flatMap(({ content }: Body) =>
        Array.isArray(content) ? content.filter(({ type }) => type === "tool_result").map((block) => textOf(block.content)) : [],
      ),
  },
  {
    name: "@openai/codex",
    prepare({ home, cwd, url, server }) {
      mkdirSync(join(home, ".codex"));
      const toml = (value: unknown) => JSON.stringify(value);
      writeFileSync(
        join(home, ".codex", "config.toml"),
        [
          'model = "mock"\nmodel_provider = "mock"',
          `[model_providers.mock]\nname = "mock"\nbase_url = ${toml(`${url}/v1`)}\nwire_api = "responses"\nenv_key = "MOCK_KEY"`,
          `[mcp_servers.cairn]\ncommand = ${toml(server.command)}\nargs = ${toml(server.args)}\nstartup_timeout_sec = 120\nrequired = true`,
          `[mcp_servers.cairn.env]\n${Object.entries(server.env)
            .map(([key, value]) => `${key} = ${toml(value)}`)
            .join("\n")}`,
          `[projects.${toml(cwd)}]\ntrust_level = "trusted"`,
        ].join("\n\n"),
      );
      return {
        args: ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", PROMPT],
        env: { CODEX_HOME: join(home, ".codex"), MOCK_KEY: "mock" },
      };
    },
    toolsIn: ({ tools }) =>
      tools.flatMap((tool: Body) => (tool.type === "namespace" ? tool.tools.map(({ name }: Body) => `${tool.name}${name}`) : [tool.name])),
    resultsIn: ({ input }) =>
      input.filter(({ type }: Body) => type === "function_call_output").map(({ output }: Body) => textOf(output?.content ?? output)),
  },
  {
    name: "@google/gemini-cli",
    prepare({ home, url, server }) {
      mkdirSync(join(home, ".gemini"));
      const settings = {
        security: { auth: { selectedType: "gemini-api-key" }, folderTrust: { enabled: false } },
        mcpServers: { cairn: { ...server, trust: true } },
        privacy: { usageStatisticsEnabled: false },
        general: { disableAutoUpdate: true },
      };
      writeFileSync(join(home, ".gemini", "settings.json"), JSON.stringify(settings));
      return {
        args: ["--yolo", "--model", "gemini-2.5-flash", "-p", PROMPT],
        env: { GEMINI_API_KEY: "mock", GOOGLE_GEMINI_BASE_URL: url, GEMINI_CLI_TRUST_WORKSPACE: "true" },
      };
    },
    toolsIn: ({ tools }) => tools.flatMap(({ functionDeclarations = [] }: Body) => functionDeclarations.map(({ name }: Body) => name)),
    resultsIn: ({ contents }) =>
      contents.flatMap(({ parts }: Body) =>
        parts
          .filter(({ functionResponse }: Body) => functionResponse)
          .map(({ functionResponse }: Body) => functionResponse.response.output ?? JSON.stringify(functionResponse.response)),
      ),
  },
  {
    name: "opencode-ai",
    prepare({ cwd, url, server }) {
      const provider = { npm: "@ai-sdk/openai-compatible", options: { baseURL: `${url}/v1`, apiKey: "mock" }, models: { mock: {} } };
      const cairn = { type: "local", command: [server.command, ...server.args], environment: server.env, timeout: 120_000 };
      const config = {
        provider: { mock: provider },
        model: "mock/mock",
        small_model: "mock/mock",
        mcp: { cairn },
        autoupdate: false,
        share: "disabled",
      };
      writeFileSync(join(cwd, "opencode.json"), JSON.stringify(config));
      return { args: ["run", "--model", "mock/mock", PROMPT], env: { OPENCODE_DISABLE_MODELS_FETCH: "1" } };
    },
    toolsIn: ({ tools }) => tools.map((tool: Body) => tool.function.name),
    resultsIn: ({ messages }) => messages.filter(({ role }: Body) => role === "tool").map(({ content }: Body) => textOf(content)),
  },
];

/**
 * `npm run test:clients` runs all four. `npm test` runs the first two, which pass only structured content to the model, and `npm run
 * test:fast` none: their installation takes minutes. A client that npm cannot install fails the test.
 */
const all = process.env.CAIRN_TEST_CLIENTS === "1";
const fast = process.env.CAIRN_TEST_FAST !== undefined && !all;
const CHOSEN = all ? TESTED : TESTED.slice(0, 2);

describe.skipIf(fast).each(CHOSEN)("$name from npm", ({ name, prepare, toolsIn, resultsIn }) => {
  it("offers save, search and resume in the first request, and passes compact answers to its model", { timeout: 600_000 }, async () => {
    const command = installClient(name);
    const home = mkdtempSync(join(folder, "home-"));
    const cwd = mkdtempSync(join(folder, "project-"));
    const model = await toolCallingModel(SCRIPT);
    const server = {
      command: process.execPath,
      args: [builtCommand(), "mcp"],
      env: { CAIRN_DATA_DIR: join(home, "cairn"), CAIRN_EMBEDDER_KIND: "none", HOME: home },
    };
    const { args, env } = prepare({ cwd, home, url: model.url, server });
    const child = spawn(command, args, { cwd, env: { PATH: process.env.PATH, HOME: home, ...env }, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
    const [code] = await once(child, "close");
    await model.close();

    const last = model.requests.at(-1);
    expect({ code, requests: model.requests.length }, output.slice(-3_000)).toEqual({ code: 0, requests: SCRIPT.length + 1 });
    for (const { tool } of SCRIPT)
      expect(
        toolsIn(model.requests[0]).some((one) => one.endsWith(tool)),
        toolsIn(model.requests[0]).join(", "),
      ).toBe(true);

    const [saved, found, resumed] = resultsIn(last);
    const id = /[0-9a-f]{8}-[0-9a-f-]{27}/.exec(saved!)?.[0];
    expect(id, saved).toBeDefined();
    expect(found).toMatch(/Parser done, lexer next/);
    expect(found).toContain(id);
    expect(found).not.toMatch(/Start in lex|content_hash|distance/); // the description is only in resume
    expect(resumed).toMatch(/Parser done, lexer next/);
    expect(resumed).toMatch(/Start in lex\(\)\./);
    const tokens = [saved!, found!, resumed!].map(countTokens);
    expect(Math.max(...tokens), `${saved}\n${found}\n${resumed}`).toBeLessThanOrEqual(150);
  });
});
