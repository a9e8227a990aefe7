import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

/** The versions of the real programs, as npm has them. */
export const CLIENT_VERSIONS = {
  "@anthropic-ai/claude-code": "2.1.197",
  "@openai/codex": "0.166.0",
  "@google/gemini-cli": "0.61.0",
  "opencode-ai": "1.18.33",
} as const;

export type ClientPackage = keyof typeof CLIENT_VERSIONS;

const cache = resolve(import.meta.dirname, "../../.cache/clients");

/** Installs a client from npm into the cache once, without running its scripts. Returns the path of its executable. */
export function installClient(name: ClientPackage): string {
  const version = CLIENT_VERSIONS[name];
  const folder = join(cache, `${name.replace(/\W+/g, "-")}-${version}`);
  if (!existsSync(folder)) {
    const unfinished = `${folder}.${process.pid}`;
    mkdirSync(unfinished, { recursive: true });
    writeFileSync(join(unfinished, "package.json"), '{"private":true}');
    const { status } = spawnSync("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", `${name}@${version}`], {
      cwd: unfinished,
      stdio: ["ignore", "ignore", "inherit"],
    });
    if (status !== 0) throw new Error(`npm could not install ${name}@${version}.`);
    if (!existsSync(folder)) renameSync(unfinished, folder);
    rmSync(unfinished, { recursive: true, force: true });
  }
  const modules = join(folder, "node_modules");
  const command = COMMANDS[name];
  if (command !== undefined) return join(modules, ".bin", command);
  // The command of these packages is written by their install script; the program itself is in a package of its platform.
  const platform = `${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  return name === "opencode-ai"
    ? join(modules, `opencode-${platform}`, "bin", "opencode")
    : join(modules, `@anthropic-ai/claude-code-${process.platform}-${process.arch}`, "claude");
}

/** Commands of packages that run without their install script. */
const COMMANDS: Partial<Record<ClientPackage, string>> = {
  "@openai/codex": "codex",
  "@google/gemini-cli": "gemini",
};

export interface ClientRun {
  readonly home: string;
  readonly cwd: string;
  /** The address of the mock model. */
  readonly url: string;
  readonly prompt: string;
}

/** Runs one request in Claude Code and waits for its end. */
export function runClaude({ home, cwd, url, prompt }: ClientRun): Promise<string> {
  const env = {
    ...{ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "mock", DISABLE_AUTOUPDATER: "1" },
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  };
  return run(installClient("@anthropic-ai/claude-code"), ["-p", prompt, "--permission-mode", "acceptEdits"], { home, cwd, env });
}

/** Runs one request in Codex and waits for its end. */
export function runCodex({ home, cwd, url, prompt }: ClientRun): Promise<string> {
  const folder = join(home, ".codex");
  mkdirSync(folder, { recursive: true });
  const config = [
    'model = "mock"\nmodel_provider = "mock"\napproval_policy = "never"\nsandbox_mode = "danger-full-access"',
    `[model_providers.mock]\nname = "mock"\nbase_url = "${url}/v1"\nwire_api = "responses"\nenv_key = "MOCK_KEY"\n`,
  ];
  writeFileSync(join(folder, "config.toml"), config.join("\n"));
  return run(installClient("@openai/codex"), ["exec", prompt], { home, cwd, env: { MOCK_KEY: "mock" } });
}

/** Runs one request in Gemini CLI and waits for its end. */
export function runGemini({ home, cwd, url, prompt }: ClientRun): Promise<string> {
  const folder = join(home, ".gemini");
  mkdirSync(folder, { recursive: true });
  const settings = {
    security: { auth: { selectedType: "gemini-api-key" } },
    general: { disableAutoUpdate: true },
    telemetry: { enabled: false },
  };
  writeFileSync(join(folder, "settings.json"), JSON.stringify({ ...settings, privacy: { usageStatisticsEnabled: false } }));
  const env = { GEMINI_API_KEY: "mock", GOOGLE_GEMINI_BASE_URL: url };
  const args = ["--skip-trust", "--yolo", "--model", "gemini-2.5-flash", "--prompt", prompt];
  return run(installClient("@google/gemini-cli"), args, { home, cwd, env });
}

async function run(
  command: string,
  args: readonly string[],
  { home, cwd, env }: { home: string; cwd: string; env: Record<string, string> },
) {
  const child = spawn(command, args, { cwd, env: { PATH: process.env.PATH, HOME: home, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  child.stdout.on("data", (chunk) => (output += chunk));
  child.stderr.on("data", (chunk) => (output += chunk));
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${output.slice(-2_000)}`);
  return output;
}
