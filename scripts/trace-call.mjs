#!/usr/bin/env node
// npm run trace: counts the source files that one warm call touches on the main thread, and how often its schemas are applied.
// `-- --list` names the files, `-- --json` prints everything for a program.
//
// A file counts when V8 executed at least one of its functions between two coverage snapshots. The embedder is a stub, so that no
// model is part of the path. Everything else is the published code (dist/), opened as the surfaces open it.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, InMemoryTransport } from "@modelcontextprotocol/client";
import { decorateOperations } from "../dist/client/decorate-operations.js";
import { indexJobs as openIndexJobs } from "../dist/client/jobs/index-jobs.js";
import { launcher } from "../dist/client/jobs/launch.js";
import { httpHandler } from "../dist/http/app.js";
import { mcpServerFactory } from "../dist/mcp/server.js";
import { open } from "../dist/open/open.js";
import { invoke, LOCAL_CALLER } from "../dist/operations/invoke.js";
import { operations } from "../dist/operations/list.js";
import { END, graph, openRunStore } from "../dist/runs.js";

/** Most source files that one call may touch. */
const LIMITS = { save: 30, "code search": 38, "index one file": 38, "run step": 23 };

/** Calls before the measured one: modules are loaded, databases open and statements prepared then. */
const WARM_UP_CALLS = 3;
/** Milliseconds for background work of earlier calls to end. */
const QUIET_MS = 300;

const dist = new URL("../dist/", import.meta.url).href;
const folder = realpathSync(mkdtempSync(join(tmpdir(), "cairn-trace-")));
const projectPath = join(folder, "project");
const dataDir = join(folder, "data");
mkdirSync(projectPath);

const session = new Session();
session.connect();
await session.post("Profiler.enable");
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });

const embedder = {
  model: "stub",
  version: "1",
  dimension: 4,
  embed: async (texts) => texts.map((text) => unitVector(text.length)),
  close: async () => {},
};
const cairn = await open({ dataDir, embedder: [embedder] });
const client = clientSide();
const calls = {
  save: await save(),
  "code search": await codeSearch(),
  "index one file": indexOneFile(),
  "index job": indexJob(),
  "run step": await runStep(),
};

const report = {};
for (const [name, { call, schemas = {} }] of Object.entries(calls)) {
  for (let warm = 0; warm < WARM_UP_CALLS; warm++) await call(warm);
  const passes = countPasses(schemas);
  const files = await filesTouched(() => call(WARM_UP_CALLS));
  report[name] = { limit: LIMITS[name], count: files.length, passes: passes(), files };
}
for (const { close } of Object.values(calls)) await close?.();
await client.indexJobs.close();
await cairn.close();
session.disconnect();
rmSync(folder, { recursive: true });
print();
if (Object.values(report).some(({ count, limit }) => count > limit)) process.exitCode = 1;

/** The operations and index jobs as `cairn mcp` has them, with jobs in this thread. */
function clientSide() {
  const launch = launcher("here", { dataDir, api: {}, code: {} }, cairn);
  const indexJobs = openIndexJobs({ dataDir, launch, counts: (path) => cairn.code.stats({ projectPath: path }) });
  return { indexJobs, cairn: { ...cairn, indexJobs }, operations: decorateOperations(operations) };
}

function operation(name) {
  return client.operations.find((one) => one.name === name);
}

/** checkpoint_save from the MCP server to SQLite. */
async function save() {
  const server = mcpServerFactory({ cairn: client.cairn, operations: client.operations, defaultProject: projectPath })();
  const mcp = new Client({ name: "trace", version: "1.0.0" });
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  await Promise.all([server.connect(theirs), mcp.connect(ours)]);
  return {
    schemas: operation("checkpoint_save"),
    async call(n) {
      const input = { summary: `Parser done, step ${n}`, context: { branch: "main" }, tags: ["parser"] };
      const { isError, content } = await mcp.callTool({ name: "checkpoint_save", arguments: input });
      if (isError) throw new Error(content[0].text);
    },
    close: () => mcp.close(),
  };
}

/** POST /search from the HTTP app to SQLite, with hits of both rankings. */
async function codeSearch() {
  await cairn.code.indexBatch({ projectPath, files: [{ path: "search.py", content: "def compute(step):\n    return step + 1\n" }] });
  const token = "cairn_local_trace";
  const handle = httpHandler({ cairn, localToken: async () => token });
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  return {
    schemas: operations.find(({ name }) => name === "code_search"),
    async call(n) {
      const body = JSON.stringify({ project_path: projectPath, query: `where is step ${n} computed` });
      const response = await handle(new Request("http://127.0.0.1/search", { method: "POST", headers, body }));
      if (response.status !== 200) throw new Error(await response.text());
      const { results, degraded } = await response.json();
      if (results.length === 0 || degraded.length > 0) throw new Error(JSON.stringify({ results, degraded }));
    },
  };
}

/** One changed file, from the service that index jobs and the server's queue call to SQLite. */
function indexOneFile() {
  return {
    async call(n) {
      const content = `def step(n):\n    return n + ${n}\n`;
      const { files } = await cairn.code.indexBatch({ projectPath, files: [{ path: "one.py", content }] });
      if (files[0].status !== "indexed") throw new Error(JSON.stringify(files));
    },
  };
}

/** The same from the operation code_index: a job that walks the tree and finds one changed file. It has no limit. */
function indexJob() {
  const codeIndex = operation("code_index");
  return {
    schemas: codeIndex,
    async call(n) {
      writeFileSync(join(projectPath, "step.py"), `def step(n):\n    return n - ${n}\n`);
      const output = await invoke(client.cairn, codeIndex, { project_path: projectPath, wait: true }, { caller: LOCAL_CALLER });
      if (output.status !== "completed" || output.counts.indexed !== 1) throw new Error(JSON.stringify(output));
    },
  };
}

/** A run of two steps, each committed to SQLite. */
async function runStep() {
  const store = await openRunStore({ storage: "sqlite", path: join(folder, "runs.db") });
  const steps = graph()
    .node("first", async ({ n }) => ({ n: n + 1 }))
    .node("second", async ({ n }) => ({ n: n * 2 }))
    .entry("first")
    .edge("first", "second")
    .edge("second", END)
    .compile();
  return { call: (n) => steps.run({ n }, { store, runId: `run-${n}` }), close: () => store.close() };
}

/** Counts how often the input and the output schema of an operation are applied from here on. */
function countPasses(schemas) {
  const passes = {};
  for (const side of ["input", "output"]) {
    const schema = schemas[side];
    if (!schema) continue;
    passes[side] = 0;
    const { run } = schema._zod;
    schema._zod.run = (...args) => {
      passes[side]++;
      return run(...args);
    };
  }
  return () => ({ ...passes });
}

async function filesTouched(call) {
  await sleep(QUIET_MS);
  await session.post("Profiler.takePreciseCoverage");
  await call();
  const { result } = await session.post("Profiler.takePreciseCoverage");
  return result
    .filter(({ url, functions }) => url.startsWith(dist) && functions.some(({ ranges }) => ranges[0].count > 0))
    .map(({ url }) => `src/${url.slice(dist.length).replace(/\.js$/, ".ts")}`)
    .sort();
}

function print() {
  if (process.argv.includes("--json")) return void process.stdout.write(`${JSON.stringify(report, undefined, 2)}\n`);
  for (const [name, { count, limit, passes, files }] of Object.entries(report)) {
    const schemas = passes.input === undefined ? "" : `, input schema applied ${passes.input}×, output schema ${passes.output}×`;
    process.stdout.write(`${name}: ${count} files${limit === undefined ? "" : ` of at most ${limit}`}${schemas}\n`);
    if (process.argv.includes("--list")) for (const file of files) process.stdout.write(`  ${file}\n`);
  }
}

/** Returns a vector of length 1: the search refuses others and would rank by keyword alone. */
function unitVector(seed) {
  const angle = seed % 7;
  return new Float32Array([Math.cos(angle), Math.sin(angle), 0, 0]);
}
