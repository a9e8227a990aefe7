import { spawn, spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { trace } from "@opentelemetry/api";
import { afterEach, describe, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { invoke, LOCAL_CALLER } from "../../src/operations/invoke.ts";
import { operations } from "../../src/operations/list.ts";
import { startTelemetry } from "../../src/telemetry/start.ts";
import { testEmbedder } from "../support/embedders.ts";

const dist = join(import.meta.dirname, "../../dist");

/** Makes every package of the OpenTelemetry SDK unknown to a process, as where it is not installed. */
const WITHOUT_SDK = `data:text/javascript,${encodeURIComponent(`
  import { register } from "node:module";
  register("data:text/javascript," + encodeURIComponent(\`
    export function resolve(name, context, next) {
      if (name.startsWith("@opentelemetry/") && name !== "@opentelemetry/api")
        throw Object.assign(new Error("Cannot find package " + name), { code: "ERR_MODULE_NOT_FOUND" });
      return next(name, context);
    }\`));`)}`;

let collector: Server | undefined;
afterEach(() => {
  collector?.close();
  collector?.closeAllConnections();
});

/** A stand-in for an OTLP collector, which keeps what it is sent. */
async function collecting(status = 200) {
  const sent: Record<string, string> = {};
  collector = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    sent[request.url!] = (sent[request.url!] ?? "") + Buffer.concat(parts).toString();
    response.writeHead(status, { "content-type": "application/json" }).end("{}");
  });
  await new Promise<void>((resolve) => collector!.listen(0, "127.0.0.1", resolve));
  return { sent, endpoint: `http://127.0.0.1:${(collector.address() as AddressInfo).port}` };
}

async function saveOne() {
  const cairn = await open({ storage: "memory", embedder: { kind: "none" } });
  const save = operations.find(({ name }) => name === "checkpoint_save")!;
  await invoke(cairn, save, { project_path: "/p", summary: "x" }, { caller: LOCAL_CALLER });
}

describe("telemetry", () => {
  it("sends spans and metrics to a collector", async () => {
    const { sent, endpoint } = await collecting();
    const telemetry = await startTelemetry({ otlpEndpoint: `${endpoint}/`, serviceName: "cairn-test" });
    await saveOne();
    await telemetry.close();
    expect(Object.keys(sent).sort()).toEqual(["/v1/metrics", "/v1/traces"]);
    expect(sent["/v1/traces"]).toContain('"name":"checkpoint_save"');
    expect(sent["/v1/traces"]).toContain("cairn-test");
    for (const name of ["checkpoint.latency", "checkpoint.error_rate", "process.cpu_seconds"]) expect(sent["/v1/metrics"]).toContain(name);
    expect(trace.getTracer("x").startSpan("after").isRecording()).toBe(false);
  });

  it("sends only the configured share of traces", async () => {
    const { sent, endpoint } = await collecting();
    const telemetry = await startTelemetry({ otlpEndpoint: endpoint, sampleRatio: 0 });
    await saveOne();
    await telemetry.close();
    expect(Object.keys(sent)).toEqual(["/v1/metrics"]);
  });

  it("counts what the embedding cache saved", async () => {
    const telemetry = await startTelemetry({ prometheus: true });
    const cairn = await open({ storage: "memory", embedder: [testEmbedder()] });
    for (let i = 0; i < 2; i++) await cairn.checkpoints.save({ projectPath: "/p", summary: "the same words" });
    const text = await telemetry.prometheus();
    expect(text).toMatch(/^embedding_cache_hits_total\S* 1$/m);
    expect(text).toMatch(/^embedding_cache_misses_total\S* 1$/m);
    expect(text).toMatch(/^embedding_saved_tokens_total\S* [1-9]/m);
    await cairn.close();
    await telemetry.close();
  });

  it("serves Prometheus and exports the same metrics at the same time", async () => {
    const { sent, endpoint } = await collecting();
    const telemetry = await startTelemetry({ otlpEndpoint: endpoint, prometheus: true });
    await saveOne();
    const text = await telemetry.prometheus();
    await telemetry.close();
    for (const name of ["checkpoint.latency", "checkpoint.error_rate", "process.cpu_seconds"]) {
      expect(sent["/v1/metrics"]).toContain(name);
      expect(text).toContain(name.replaceAll(".", "_"));
    }
  });

  it("keeps operations going and ends in time when the collector is gone", async () => {
    const telemetry = await startTelemetry({ otlpEndpoint: "http://127.0.0.1:9", prometheus: true });
    await saveOne();
    expect(await telemetry.prometheus()).toContain("checkpoint_latency_count");
    await telemetry.close();
  });

  it("records a single command as part of the trace it was started in", async () => {
    const { sent, endpoint } = await collecting();
    const dataDir = await mkdtemp(join(tmpdir(), "cairn-telemetry-"));
    const env = {
      ...process.env,
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
      TRACEPARENT: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    };
    const main = join(import.meta.dirname, "../../dist/bundle/main.cjs");
    const child = spawn(process.execPath, [main, "checkpoint", "list", "--data-dir", dataDir, "--project", dataDir], {
      env,
      stdio: "ignore",
    });
    const code = await new Promise((resolve) => child.on("close", resolve));
    await rm(dataDir, { recursive: true });
    expect(code).toBe(0);
    expect(sent["/v1/traces"]).toMatch(/"traceId":"0af7651916cd43dd8448eb211c80319c".*"name":"checkpoint_list"/);
  });

  it("has the metrics, and reports that nothing is exported, where the SDK is not installed", () => {
    const script = `
      const { startTelemetry } = await import(${JSON.stringify(join(dist, "telemetry/start.js"))});
      const { observe } = await import(${JSON.stringify(join(dist, "telemetry/observe.js"))});
      const warnings = [];
      const log = { warn: (fields, message) => warnings.push(message) };
      const telemetry = await startTelemetry({ prometheus: true, otlpEndpoint: "http://127.0.0.1:9", log });
      await observe({ operation: "checkpoint_save" }, async () => {});
      console.log(JSON.stringify({ warnings, text: await telemetry.prometheus() }));
      await telemetry.close();`;
    const { stdout, stderr } = spawnSync(process.execPath, ["--import", WITHOUT_SDK, "--input-type=module", "-e", script], {
      encoding: "utf8",
    });
    expect(stderr).toBe("");
    const { warnings, text } = JSON.parse(stdout);
    expect(warnings).toEqual([expect.stringMatching(/OpenTelemetry SDK is missing\. Run npm install @opentelemetry\/sdk-metrics@2 /)]);
    expect(text).toMatch(/^checkpoint_latency_count\{operation="checkpoint_save",outcome="ok"\} 1$/m);
    expect(text).toMatch(/^process_cpu_seconds_total \d/m);
  });

  it("loads no SDK when nobody wants it", () => {
    const script = `
      const { createRequire } = await import("node:module");
      const [{ open }, { invoke, LOCAL_CALLER }, { operations }, { startTelemetry }] = await Promise.all(
        ["index.js", "operations/invoke.js", "operations/list.js", "telemetry/start.js"].map((file) => import(${JSON.stringify(`${dist}/`)} + file)));
      const telemetry = await startTelemetry();
      const cairn = await open({ storage: "memory", embedder: { kind: "none" } });
      await invoke(cairn, operations.find(({ name }) => name === "checkpoint_save"), { project_path: "/p", summary: "x" }, { caller: LOCAL_CALLER });
      await telemetry.close();
      const loaded = Object.keys(createRequire(${JSON.stringify(`${dist}/index.js`)}).cache).filter((path) => path.includes("@opentelemetry"));
      console.log(JSON.stringify([...new Set(loaded.map((path) => path.split("@opentelemetry/")[1].split("/")[0]))]));`;
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("OTEL_")));
    const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8", env });
    expect([stderr, JSON.parse(stdout)]).toEqual(["", ["api"]]);
  });
});
