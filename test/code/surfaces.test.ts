import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { builtCommand, stage } from "../cli/stage.ts";
import { countTokens } from "../support/o200k.ts";
import { removeFolder, SLOW_START } from "../support/processes.ts";

const RETRY = `import { sleep } from "./sleep";

/** Tries again, waiting longer each time. */
export async function retryWithBackoff(work: () => Promise<void>) {
  for (let delay = 10; ; delay *= 2) {
    try {
      return await work();
    } catch {
      await sleep(delay);
    }
  }
}
`;
const QUEUE = `import { retryWithBackoff } from "./retry";

export class JobQueue {
  async run(job: () => Promise<void>) {
    await retryWithBackoff(job);
  }
}
`;

let s: ReturnType<typeof stage>;
beforeAll(async () => {
  s = stage();
  mkdirSync(join(s.project, "src"), { recursive: true });
  writeFileSync(join(s.project, "src/retry.ts"), RETRY);
  writeFileSync(join(s.project, "src/queue.ts"), QUEUE);
  writeFileSync(join(s.project, "src/odd.ts"), 'export const clearScreen = "\u001b[2J the odd one";\n');
  const indexed = await s.cairn(["code", "index", "--wait"], { env });
  expect(indexed.code, indexed.stderr).toBe(0);
});
afterAll(() => removeFolder(s.folder)); // the server that a client started may just be ending

const env = { CAIRN_EMBEDDER_KIND: "none" };
const cairn = (...argv: string[]) => s.cairn(["code", ...argv], { env });
const json = async (...argv: string[]) => JSON.parse((await cairn(...argv, "--json")).stdout);

describe("code on the command line", () => {
  it("shows hits as a person reads them: place, symbol, a few lines", async () => {
    const { code, stdout } = await cairn("search", "retry with backoff", "--top-k", "1");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^src\/retry\.ts:1-12 {2}retryWithBackoff {2}\(function, typescript, keyword #1\)\n/);
    expect(stdout).toContain("\n 4  export async function retryWithBackoff(");
    expect(stdout).toContain("… 2 more lines");
    const method = await cairn("search", "JobQueue.run", "--top-k", "1");
    expect(method.stdout).toContain("src/queue.ts:");
    expect((await json("search", "retryWithBackoff", "--top-k", "1")).results[0]).toMatchObject({
      path: "src/retry.ts",
      start_line: 1,
      end_line: 12,
    });
  });

  it("lets no indexed text steer the terminal", async () => {
    const { stdout } = await s.cairn(["code", "search", "clearScreen"], { env: { ...env, FORCE_COLOR: "1" } });
    expect(stdout).toContain("the odd one");
    expect(stdout).not.toContain("\u001b[2J");
    expect(stdout).toContain("\u001b[1msrc/odd.ts:1-1\u001b[22m"); // its own colours are there
  });

  it("lists usages and reads context", async () => {
    const usages = await cairn("usages", "retryWithBackoff");
    expect(usages.stdout).toMatch(/^Definitions:\n {2}src\/retry\.ts:4:23 {2}export async function/);
    expect(usages.stdout).toContain("  src/queue.ts:5:11  await retryWithBackoff(job);");
    expect((await cairn("context", "src/retry.ts", "4", "5")).stdout).toBe(
      "src/retry.ts:4-5  (typescript)\n4  export async function retryWithBackoff(work: () => Promise<void>) {\n5    for (let delay = 10; ; delay *= 2) {\n",
    );
    expect((await cairn("context", "--symbol", "JobQueue")).stdout).toContain("async run(job");
  });

  it("counts, cleans, compacts and refuses, with the exit codes of all commands", async () => {
    expect((await cairn("stats")).stdout).toMatch(/^3 files in \d+ chunks/);
    expect((await cairn("compact")).stdout).toContain("Removed 0 rows, 0 full-text entries and 0 vectors");
    expect((await cairn("clean", "src/odd.ts")).stdout).toContain("1 files were removed");
    expect((await cairn("context", "src/odd.ts")).code).toBe(3);
    expect((await cairn("search")).code).toBe(2);
    expect(await cairn("search", "x", "--kinds", "spaceship")).toMatchObject({ code: 2, stderr: expect.stringContaining("spaceship") });
    expect(await cairn("context", "a.ts", "--symbol", "b")).toMatchObject({ code: 2, stderr: expect.stringContaining("exactly one") });
    expect((await cairn("reembed")).stderr).toContain("disabled");
    expect((await s.cairn(["code", "send"], { env })).code).toBe(2); // only programs have a use for it
  });
});

describe("code for agents", () => {
  it("is offered unasked, and answers with lines that can be read and used", async () => {
    const client = new Client({ name: "test", version: "1" });
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [builtCommand(), "mcp", "--project", s.project],
      env: { PATH: process.env.PATH ?? "", HOME: s.home, ...env },
      stderr: "ignore",
    });
    await client.connect(transport, SLOW_START);
    try {
      const { tools } = await client.listTools();
      const names = tools.map(({ name }) => name);
      expect(names).toEqual(expect.arrayContaining(["code_search", "code_usages", "code_context"]));
      for (const hidden of ["code_send", "code_manifest", "code_clean", "code_reembed"]) expect(names).not.toContain(hidden);
      expect(countTokens(JSON.stringify(tools))).toBeLessThanOrEqual(2_000);

      const found = await client.callTool({ name: "code_search", arguments: { query: "retry with backoff", top_k: 2 } });
      expect(found.structuredContent).toMatchObject({ results: [{ path: "src/retry.ts", symbol: "retryWithBackoff" }, {}] });
      expect((found.content as { text: string }[])[0]!.text).toContain("12  }"); // whole, not only its first lines
      const usages = await client.callTool({ name: "code_usages", arguments: { symbol: "retryWithBackoff" } });
      expect(usages.structuredContent).toMatchObject({ definitions: [expect.stringMatching(/^src\/retry\.ts:4:23 /)] });
      const context = await client.callTool({ name: "code_context", arguments: { path: "src/queue.ts", start_line: 3, end_line: 3 } });
      expect(context.structuredContent).toMatchObject({ contexts: [{ text: "export class JobQueue {" }] });
      const wrong = await client.callTool({ name: "code_context", arguments: { path: "nowhere.ts" } });
      expect(wrong.isError).toBe(true);
      expect((wrong.content as { text: string }[])[0]!.text).toContain("nowhere.ts");
    } finally {
      await client.close();
    }
  });
});
