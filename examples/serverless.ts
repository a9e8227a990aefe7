/** Cairn as a function of a request, for serverless hosts. Run it with: npm run example -- serverless */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type HttpHandler, httpHandler } from "../src/http/index.ts"; // in your own project: from "cairn-memory/http"
import { open } from "../src/index.ts"; // and: from "cairn-memory"

// A serverless host has no durable disk, so the data are in PostgreSQL. Only keys.json of the folder is read. It has hashes of keys, not
// the keys: create it with `cairn key create --data-dir keys`, and deploy it with the function.
const dataDir = mkdtempSync(join(tmpdir(), "cairn-example-"));
const storage = process.env.CAIRN_POSTGRES_URL ?? "sqlite";

async function start(): Promise<HttpHandler> {
  const cairn = await open({ storage, dataDir, embedder: { kind: "static" } }); // no second process, no download
  return httpHandler({ cairn });
}

// The first request opens Cairn; later requests reuse it. After a failure the next request tries again.
let started: Promise<HttpHandler> | undefined;

/** The handler that the host calls: `export default` it. */
const app = {
  async fetch(request: Request): Promise<Response> {
    started ??= start();
    try {
      return await (await started)(request);
    } catch (error) {
      started = undefined;
      throw error;
    }
  },
};

// The rest simulates the host. Every caller needs a key, because the function has no local user.
const admin = await open({ storage, dataDir, embedder: { kind: "none" } });
const { key } = await admin.keys.create({ label: "example", access: "write", projects: ["/home/me/app"] });
await admin.close();

const call = (path: string, body: object, headers: Record<string, string> = {}) =>
  app.fetch(
    new Request(`https://memory.example${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ project_path: "/home/me/app", ...body }),
    }),
  );
assert.equal((await call("/v1/checkpoint/list", {})).status, 401);
const saved = await call("/v1/checkpoint/save", { summary: "Parser done, lexer next" }, { authorization: `Bearer ${key}` });
assert.equal(saved.status, 200, await saved.clone().text());
const { summary } = (await saved.json()) as { summary: string };
console.log(`Saved without a server: ${summary}`);
rmSync(dataDir, { recursive: true, force: true });
