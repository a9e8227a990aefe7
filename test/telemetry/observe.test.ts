import { context, metrics, propagation, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Cairn, CairnError, open } from "../../src/index.ts";
import { invoke, LOCAL_CALLER } from "../../src/operations/invoke.ts";
import { operations } from "../../src/operations/list.ts";
import { type Operation, operation } from "../../src/operations/operation.ts";
import type { Log } from "../../src/ports/log.ts";
import { metricRegistry } from "../../src/telemetry/metric-registry.ts";

const project = "/home/me/project";
const spans = new InMemorySpanExporter();
let cairn: Cairn;
let prometheus: () => Promise<string>;

beforeEach(async () => {
  cairn = await open({ storage: "memory", embedder: { kind: "none" } });
  trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter: spans })] }));
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  const registry = metricRegistry();
  metrics.setGlobalMeterProvider(registry);
  prometheus = registry.text;
});

afterEach(() => {
  spans.reset();
  trace.disable();
  context.disable();
  propagation.disable();
  metrics.disable();
});

const named = (name: string): Operation => operations.find((one) => one.name === name)!;
const save = (input: object, invocation: object = {}) =>
  invoke(cairn, named("checkpoint_save"), { project_path: project, summary: "x", ...input }, { caller: LOCAL_CALLER, ...invocation });
const failing = (error: unknown): Operation =>
  operation({ ...named("checkpoint_list"), run: () => Promise.reject(error) } as Operation) as Operation;
const fail = (error: unknown, invocation: object = {}) =>
  invoke(cairn, failing(error), { project_path: project }, { caller: LOCAL_CALLER, ...invocation }).catch(
    (thrown: CairnError) => thrown.code,
  );

function recordingLog(): Log & { readonly lines: [level: string, fields: Record<string, unknown>, message: string][] } {
  const lines: [string, Record<string, unknown>, string][] = [];
  const at = (level: string) => (fields: object, message: string) => void lines.push([level, fields as Record<string, unknown>, message]);
  return { lines, error: at("error"), warn: at("warn"), info: at("info"), debug: at("debug") };
}

describe("spans", () => {
  it("are made for every operation, with its duration", async () => {
    await save({}, { edge: "http", requestId: "r-1" });
    const [span] = spans.getFinishedSpans();
    expect(span).toMatchObject({ name: "checkpoint_save", kind: SpanKind.SERVER, status: { code: SpanStatusCode.UNSET } });
    expect(span!.attributes).toMatchObject({ "cairn.edge": "http", "cairn.request_id": "r-1", "cairn.duration_ms": expect.any(Number) });
  });

  it("continue the caller's trace", async () => {
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    await save({}, { traceparent, tracestate: "vendor=1" });
    const [span] = spans.getFinishedSpans();
    expect(span!.spanContext().traceId).toBe("0af7651916cd43dd8448eb211c80319c");
    expect(span!.parentSpanContext?.spanId).toBe("b7ad6b7169203331");
    expect(span!.spanContext().traceState?.serialize()).toBe("vendor=1");
  });

  it("start a trace of their own when the caller's is broken", async () => {
    await save({}, { traceparent: "00-zz-xx-01" });
    expect(spans.getFinishedSpans()[0]!.spanContext().traceId).toMatch(/^[0-9a-f]{32}$/);
    expect(spans.getFinishedSpans()[0]!.parentSpanContext).toBeUndefined();
  });

  it("say what went wrong, without secrets", async () => {
    await fail(new Error("connect to postgres://cairn:hunter2@db.example/x failed"));
    const [span] = spans.getFinishedSpans();
    expect(span!.status.code).toBe(SpanStatusCode.ERROR);
    expect(span!.attributes["error.type"]).toBe("internal");
    expect(span!.events[0]!.attributes!["exception.message"]).toBe("connect to postgres://cairn:[redacted]@db.example/x failed");
    expect(JSON.stringify(span!.events)).not.toContain("hunter2");
  });
});

describe("metrics", () => {
  it("carry the names of the noun", async () => {
    await save({});
    await save({ summary: "" }).catch(() => {});
    await fail(new DOMException("late", "TimeoutError"));
    const text = await prometheus();
    expect(text).toMatch(/^checkpoint_errors_total\{operation="checkpoint_save",type="invalid_input"\} 1$/m);
    expect(text).toMatch(/^checkpoint_errors_total\{operation="checkpoint_list",type="timeout"\} 1$/m);
    expect(text).toMatch(/^checkpoint_error_rate\{operation="checkpoint_save"\} 0.5$/m);
    expect(text).toMatch(/^checkpoint_error_rate\{operation="checkpoint_list"\} 1$/m);
    expect(text).toMatch(/^checkpoint_timeout_count_total\{operation="checkpoint_list"\} 1$/m);
    expect(text).toMatch(/^checkpoint_latency_count\{operation="checkpoint_save",outcome="ok"\} 1$/m);
    expect(text).toMatch(/^checkpoint_latency_bucket\{operation="checkpoint_save",outcome="ok",le="30"\} 1$/m);
  });

  it("forget failures that lie more than a hundred calls back", async () => {
    await save({ summary: "" }).catch(() => {});
    for (let i = 0; i < 99; i++) await save({});
    expect(await prometheus()).toMatch(/^checkpoint_error_rate\{operation="checkpoint_save"\} 0.01$/m);
    await save({});
    expect(await prometheus()).toMatch(/^checkpoint_error_rate\{operation="checkpoint_save"\} 0$/m);
  });

  it("do not count a caller that went away as an error rate", async () => {
    await fail(new DOMException("gone", "AbortError"));
    expect(await prometheus()).toMatch(/^checkpoint_error_rate\{operation="checkpoint_list"\} 0$/m);
  });
});

describe("log levels", () => {
  it.each([
    ["error", new Error("boom"), "internal"],
    ["warn", new CairnError("invalid_input", "bad"), "invalid_input"],
    ["warn", new DOMException("late", "TimeoutError"), "timeout"],
    ["info", new CairnError("not_found", "none"), "not_found"],
  ])("are %s for %s", async (level, error, code) => {
    const log = recordingLog();
    expect(await fail(error, { log })).toBe(code);
    expect(log.lines.map(([at]) => at)).toEqual(["debug", level]);
    expect(log.lines[1]![1]).toMatchObject({ operation: "checkpoint_list", code });
  });

  it("are info for what succeeded, with trace and request", async () => {
    const log = recordingLog();
    await save({}, { log, requestId: "r-2", caller: { ...LOCAL_CALLER, keyId: "0f3a9c27b1d4" } });
    const [, [level, fields]] = log.lines as [unknown, [string, Record<string, unknown>, string]];
    expect(level).toBe("info");
    expect(fields).toMatchObject({
      operation: "checkpoint_save",
      request_id: "r-2",
      key_id: "0f3a9c27b1d4",
      duration_ms: expect.any(Number),
    });
    expect(fields.trace_id).toBe(spans.getFinishedSpans()[0]!.spanContext().traceId);
  });
});
