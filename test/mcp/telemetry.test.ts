import { context, propagation, SpanKind, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Log } from "../../src/ports/log.ts";
import { startHttp } from "./connections.ts";

const spans = new InMemorySpanExporter();
const TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736";
const traceparent = `00-${TRACE_ID}-00f067aa0ba902b7-01`;

beforeEach(() => {
  trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter: spans })] }));
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
});
afterEach(() => {
  spans.reset();
  trace.disable();
  context.disable();
  propagation.disable();
});

it.each(["2025-11-25", "2026-07-28"] as const)("continues the caller's trace and logs the call (%s)", async (era) => {
  const lines: string[] = [];
  const write = (_: unknown, message: string) => void lines.push(message);
  const log: Log = { error: write, warn: write, info: write, debug: write };
  const server = await startHttp({ log });
  const client = await server.connect(era);
  await client.callTool({ name: "probe_aborted", arguments: {}, _meta: { traceparent, tracestate: "a=b" } });
  await client.callTool({ name: "probe_aborted", arguments: {}, _meta: { traceparent: "nonsense" } });
  const [traced, untraced] = spans.getFinishedSpans().filter(({ name }) => name === "probe_aborted");
  expect(traced?.spanContext().traceId).toBe(TRACE_ID);
  expect(traced?.kind).toBe(SpanKind.SERVER);
  expect(traced?.attributes).toMatchObject({ "cairn.edge": "mcp" });
  expect(untraced?.spanContext().traceId).not.toBe(TRACE_ID);
  expect(lines).toContain("probe_aborted done");
  await server.close();
});

it.each(["2025-11-25", "2026-07-28"] as const)("reports a cancelled call as cancelled for any reason (%s)", async (era) => {
  const codes: unknown[] = [];
  const write = (fields: Readonly<Record<string, unknown>>) => void codes.push(fields.code);
  const server = await startHttp({ log: { error: write, warn: write, info: write, debug: () => {} } });
  const client = await server.connect(era);
  const cancel = new AbortController();
  const running = client.callTool(
    { name: "probe_count", arguments: { steps: 300 } },
    { signal: cancel.signal, onprogress: () => cancel.abort("I changed my mind") },
  );
  await expect(running).rejects.toThrow();
  await expect.poll(() => codes).toEqual(["cancelled"]);
  await server.close();
});
