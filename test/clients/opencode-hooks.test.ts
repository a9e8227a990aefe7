import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { builtCommand } from "../cli/stage.ts";
import { removeFolder } from "../support/processes.ts";
import { installClient } from "./client-programs.ts";
import { type Body, toolCallingModel } from "./tool-calling-model.ts";

const home = realpathSync(mkdtempSync(join(tmpdir(), "cairn-opencode-")));
const cwd = join(home, "project");
afterAll(() => removeFolder(home));

/** Runs a program in the project and returns what it prints. */
async function run(command: string, args: readonly string[]): Promise<string> {
  const env = { PATH: process.env.PATH, HOME: home, CAIRN_EMBEDDER_KIND: "none", OPENCODE_DISABLE_MODELS_FETCH: "1" };
  const child = spawn(command, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  let errors = "";
  child.stdout.on("data", (chunk) => (output += chunk));
  child.stderr.on("data", (chunk) => (errors += chunk));
  const [code] = await once(child, "close");
  expect(code, errors).toBe(0);
  return output;
}

const cairn = (...args: string[]) => run(process.execPath, [builtCommand(), ...args]);

// Like the other tests of opencode, only in `npm run test:clients`: its installation takes minutes.
describe.runIf(process.env.CAIRN_TEST_CLIENTS === "1")("opencode from npm with the plugin of cairn init --hooks", () => {
  it("shows the last checkpoint to the model and saves the session", { timeout: 600_000 }, async () => {
    mkdirSync(join(cwd, ".opencode"), { recursive: true });
    await run("git", ["init", "--quiet", "."]);
    await cairn("checkpoint", "save", "--summary", "Parser done, lexer next");
    await cairn("init", "--hooks");
    const model = await toolCallingModel([]);
    const provider = { npm: "@ai-sdk/openai-compatible", options: { baseURL: `${model.url}/v1`, apiKey: "mock" }, models: { mock: {} } };
    const config = { provider: { mock: provider }, model: "mock/mock", small_model: "mock/mock", autoupdate: false, share: "disabled" };
    writeFileSync(join(cwd, "opencode.json"), JSON.stringify(config));
    await run(installClient("opencode-ai"), ["run", "--model", "mock/mock", "Write the tests of the lexer"]);
    await model.close();

    const system = model.requests[0].messages.filter(({ role }: Body) => role === "system");
    expect(JSON.stringify(system)).toContain("Parser done, lexer next");
    // opencode ends without waiting for the hook, which then completes on its own.
    const titles = async () => JSON.parse(await cairn("checkpoint", "list", "--json")).checkpoints.map(({ summary }: Body) => summary);
    await expect.poll(titles, { timeout: 60_000, interval: 1_000 }).toHaveLength(2);
    expect((await titles())[0]).toMatch(/^End of session: .*Write the tests of the lexer/);
  });
});
