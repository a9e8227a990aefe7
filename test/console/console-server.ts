import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { fillWorld } from "../../bench/console/world.ts";
import { serve } from "../../src/http/serve.ts";
import { type Cairn, open } from "../../src/index.ts";
import { mcpHttpHandler } from "../../src/mcp/http.ts";
import { mcpServerFactory } from "../../src/mcp/server.ts";
import { operations } from "../../src/operations/list.ts";
import { hashEmbedder } from "../support/hash-embedder.mjs";
import { bearer, TEST_TOKEN } from "../support/local-token.ts";
import { removeFolder } from "../support/processes.ts";

export interface ConsoleServer {
  readonly url: string;
  readonly cairn: Cairn;
  /** Opens a page of the console, signed in as the local user by a link as `cairn ui` makes it. */
  visit(page: Page, hash?: string): Promise<void>;
  close(): Promise<void>;
}

/** Serves a store that has the records of some weeks, with MCP, as `cairn serve` does. */
export async function consoleServer(storage: string): Promise<ConsoleServer> {
  const folder = mkdtempSync(join(tmpdir(), "cairn-console-"));
  const cairn = await open({
    storage,
    dataDir: join(folder, "data"),
    stateDir: join(folder, "state"),
    embedder: [hashEmbedder({ model: "hash", dimension: 64 })],
  });
  await cairn.indexing.start();
  await fillWorld(cairn);
  const mcp = mcpHttpHandler(mcpServerFactory({ cairn, operations, toolsets: ["core", "code", "knowledge"] }));
  const server = await serve({
    cairn,
    port: 0,
    localToken: async () => TEST_TOKEN,
    rateLimit: false,
    mount: { "/mcp": (request, { caller }) => mcp.fetch(request, caller) },
  });
  return {
    url: server.url,
    cairn,
    async visit(page, hash = "#/timeline") {
      const answer = await fetch(`${server.url}/session/code`, { method: "POST", headers: bearer(TEST_TOKEN) });
      const { code } = (await answer.json()) as { code: string };
      await page.goto(`${server.url}/${hash}${hash.includes("?") ? "&" : "?"}code=${code}`);
      await page.locator("main h1").waitFor();
    },
    async close() {
      await server.close();
      await mcp.close();
      await cairn.close();
      await removeFolder(folder);
    },
  };
}
