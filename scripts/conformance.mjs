#!/usr/bin/env node
// Runs external test suites for MCP servers: the conformance suite for both protocol revisions, and the Inspector. Scenarios that need
// the suite's fixtures run on a test server with our transport stack. Scenarios that need none also run on `cairn serve`.
// The Inspector tests the product over stdio and HTTP.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { REQUIRED, readSummary, WITHOUT_FIXTURE } from "./conformance/scenarios.mjs";
import { startForwarder, startServer } from "./conformance/servers.mjs";
import { installSuites, root, runOrExit, suiteRunner } from "./conformance/suites.mjs";

const ERAS = ["legacy", "modern"];
const LOAD_CALLS = 200;
const TOOLSETS = ["core", "code", "knowledge", "runs", "systems", "admin"];
const cli = join(root, "dist", "bundle", "main.cjs");
const failures = [];

runOrExit(process.execPath, [join(root, "scripts", "build.mjs")]);
const dataDir = mkdtempSync(join(tmpdir(), "cairn-conformance-"));
const run = suiteRunner(installSuites(), dataDir);
try {
  await testFixtures();
  const product = await startProduct();
  try {
    await testProduct(product);
    await inspect(product);
  } finally {
    await product.stop();
  }
} finally {
  rmSync(dataDir, { recursive: true, force: true });
}
if (failures.length > 0) {
  console.error(`\n${failures.length} failed:\n${failures.join("\n")}`);
  process.exit(1);
}
console.log("\nAll required scenarios pass, and the Inspector reports no problem.");

/** Runs every required scenario on the test server, which has the suite's fixtures. */
async function testFixtures() {
  const server = await startServer([join(root, "test", "conformance", "server.mjs")], (line) => line);
  try {
    for (const [revision, required] of Object.entries(REQUIRED)) {
      const { code, output } = await run("conformance", ["server", "--url", server.url, "--requirements", revision]);
      const passed = readSummary(output).filter((scenario) => scenario.required && scenario.passed);
      report(
        `conformance ${revision}, test server with fixtures: ${passed.length} of ${required} required scenarios pass`,
        code === 0 && passed.length === required,
        output,
      );
    }
  } finally {
    await server.stop();
  }
}

/** Runs the scenarios that need no fixture on `cairn serve`. The suite exits with an error there, because it runs the others too. */
async function testProduct({ url, token }) {
  const forwarder = await startForwarder(url, token);
  try {
    for (const [revision, names] of Object.entries(WITHOUT_FIXTURE)) {
      const { output } = await run("conformance", ["server", "--url", forwarder.url, "--requirements", revision]);
      const passed = new Set(readSummary(output).flatMap(({ name, passed }) => (passed ? [name] : [])));
      const failed = names.filter((name) => !passed.has(name));
      report(
        `conformance ${revision}, cairn serve: ${names.length - failed.length} of ${names.length} scenarios without a fixture pass`,
        failed.length === 0,
        `Failed: ${failed.join(", ")}\n${output}`,
      );
      console.log(`    on cairn serve and the test server: ${names.join(", ")}`);
      const others = readSummary(output).filter(({ name, required }) => required && !names.includes(name));
      console.log(`    on the test server only: ${others.map(({ name }) => name).join(", ")}`);
    }
  } finally {
    forwarder.stop();
  }
}

async function startProduct() {
  const toolsets = `mcp.toolsets=${TOOLSETS.join(",")}`;
  const server = await startServer(
    [cli, "serve", "--port", "0", "--json", "--data-dir", dataDir, "--set", toolsets, "--set", "log.level=error"],
    (line) => /"mcp_url": *"([^"]+)"/.exec(line)?.[1],
  );
  return { ...server, token: readFileSync(join(dataDir, "token"), "utf8").trim() };
}

async function inspect({ url, token }) {
  const toolsetFlags = TOOLSETS.flatMap((name) => ["--toolsets", name]);
  const targets = {
    stdio: { options: [], target: [process.execPath, cli, "mcp", "--data-dir", dataDir, "--project", root, ...toolsetFlags] },
    HTTP: { options: ["--header", `Authorization: Bearer ${token}`], target: [url] },
  };
  for (const [transport, { options, target }] of Object.entries(targets))
    for (const era of ERAS) {
      const inspector = (...args) =>
        run("mcp-inspector", ["--cli", ...args, ...options, "--protocol-era", era, "--format", "json", "--", ...target]);
      await inspectTools(inspector, `${transport}, ${era}`);
      await inspectLoad(inspector, `${transport}, ${era}`);
    }
}

async function inspectTools(inspector, label) {
  const { code, output, errors } = await inspector("--method", "tools/list", "--strict");
  const tools = readJson(output)?.result?.tools ?? [];
  report(`inspector --strict, ${label}: ${tools.length} tools`, code === 0 && tools.length > 0 && !errors.trim(), output + errors);
}

async function inspectLoad(inspector, label) {
  const input = JSON.stringify({ project_path: root, summary: "Load" });
  const call = ["--method", "tools/call", "--tool-name", "checkpoint_save", "--tool-args-json", input];
  const load = ["--load", "--load-concurrency", "8", "--load-requests", String(LOAD_CALLS)];
  const { code, output, errors } = await inspector(...call, ...load);
  const { ok = 0 } = readJson(output)?.result ?? {};
  report(`inspector --load, ${label}: ${ok} of ${LOAD_CALLS} calls succeed`, code === 0 && ok === LOAD_CALLS, output + errors);
}

function report(line, good, output) {
  console.log(`${good ? "✓" : "✗"} ${line}`);
  if (good) return;
  failures.push(line);
  console.error(output);
}

function readJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // the command failed and printed a message instead
  }
}
