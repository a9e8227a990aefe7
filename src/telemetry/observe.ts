import {
  type Attributes,
  type Counter,
  context,
  type Histogram,
  type MeterProvider,
  metrics,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import { asCairnError, type CairnError, type ErrorCode } from "../model/errors.ts";
import { RECENT_CALLS_MAX, type RecentCall } from "../model/recent-call.ts";
import { VERSION } from "../model/version.ts";
import type { Log } from "../ports/log.ts";
import { redactForLog } from "./redact.ts";

/** The log level of each error code. A new code does not compile until it has a level. */
export const LOG_LEVEL: Record<ErrorCode, "error" | "warn" | "info" | "debug"> = {
  internal: "error",
  unavailable: "error",
  invalid_input: "warn",
  timeout: "warn",
  unauthorized: "warn",
  forbidden: "warn",
  conflict: "warn",
  too_large: "warn",
  rate_limited: "debug", // a limited caller must not be able to fill the log; the metrics count it
  not_found: "info",
  cancelled: "info",
};

export interface ObservedCall {
  readonly operation: string;
  readonly edge?: string | undefined;
  readonly requestId?: string | undefined;
  readonly keyId?: string | undefined;
  readonly traceparent?: string | undefined;
  readonly tracestate?: string | undefined;
  readonly log?: Log | undefined;
}

/** Runs an operation inside a span and records it in the metrics and the log. Without an SDK and a log this is a few empty calls. */
export async function observe<T>(call: ObservedCall, run: () => Promise<T>): Promise<T> {
  const { operation, edge, requestId, keyId, log } = call;
  const fields = { operation, edge, request_id: requestId, key_id: keyId };
  const remote = edge === "http" || edge === "mcp";
  const options = {
    kind: remote ? SpanKind.SERVER : SpanKind.INTERNAL,
    attributes: { "cairn.operation": operation, ...(edge && { "cairn.edge": edge }), ...(requestId && { "cairn.request_id": requestId }) },
  };
  return trace.getTracer("cairn", VERSION).startActiveSpan(operation, options, parentOf(call), async (span) => {
    const startedAt = performance.now();
    log?.debug(fields, `${operation} started`);
    try {
      const result = await run();
      const durationMs = performance.now() - startedAt;
      recordCall(operation, durationMs, undefined);
      remember(call, durationMs, undefined);
      span.setAttribute("cairn.duration_ms", durationMs);
      log?.info({ ...fields, ...traceOf(span), duration_ms: rounded(durationMs) }, `${operation} done`);
      return result;
    } catch (thrown) {
      const error = asCairnError(thrown);
      const durationMs = performance.now() - startedAt;
      recordCall(operation, durationMs, error.code);
      remember(call, durationMs, error.code);
      span.setAttributes({ "cairn.duration_ms": durationMs, "error.type": error.code });
      recordFailure(span, error);
      const failure = { ...fields, ...traceOf(span), duration_ms: rounded(durationMs), code: error.code };
      log?.[LOG_LEVEL[error.code]](
        error.code === "internal" ? { ...failure, err: error.cause ?? error } : failure,
        `${operation}: ${error.message}`,
      );
      throw error;
    } finally {
      span.end();
    }
  });
}

/** The last calls over the network, oldest first. */
const recent: RecentCall[] = [];

/** Returns the last calls over the network that this process answered, newest first. */
export function recentCalls(): readonly RecentCall[] {
  return recent.toReversed();
}

function remember({ operation, edge, keyId }: ObservedCall, durationMs: number, error: ErrorCode | undefined): void {
  if (edge !== "http" && edge !== "mcp") return;
  if (recent.length >= RECENT_CALLS_MAX) recent.shift();
  const at = new Date(Date.now() - durationMs).toISOString();
  recent.push({ at, operation, edge, durationMs: rounded(durationMs), ...(error && { error }), ...(keyId !== undefined && { keyId }) });
}

function parentOf({ traceparent, tracestate }: ObservedCall) {
  if (traceparent === undefined) return context.active();
  return propagation.extract(context.active(), { traceparent, ...(tracestate === undefined ? {} : { tracestate }) });
}

function recordFailure(span: Span, error: CairnError): void {
  if (!span.isRecording()) return;
  span.setStatus({ code: SpanStatusCode.ERROR, message: redactForLog(`${error.code}: ${error.message}`) });
  if (error.code !== "internal") return;
  const cause = error.cause instanceof Error ? error.cause : error;
  span.recordException({ name: cause.name, message: redactForLog(cause.message), stack: redactForLog(cause.stack ?? "") });
}

/** The trace of a log line, where there is one. */
function traceOf(span: Span): { readonly trace_id?: string } {
  return span.isRecording() ? { trace_id: span.spanContext().traceId } : {};
}

function rounded(ms: number): number {
  return Math.round(ms * 100) / 100;
}

/** Seconds; from a cached read to the longest time limit of an operation. */
const LATENCY_BOUNDARIES = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** The error rate of an operation is over this many of its last calls. */
const RATE_WINDOW = 100;

interface Instruments {
  readonly latency: Histogram;
  readonly errors: Counter;
  readonly timeouts: Counter;
  /** The last outcomes of each operation: 1 for a failure. */
  readonly outcomes: Map<string, { readonly ring: Uint8Array; calls: number }>;
}

/** Instruments belong to a meter provider, and there is a new one whenever telemetry is started. */
const known = new WeakMap<MeterProvider, Map<string, Instruments>>();

/** Records one call under the names of its noun: `checkpoint.latency`, `checkpoint.errors.total`, `checkpoint.timeout_count`, `checkpoint.error_rate`. */
export function recordCall(operation: string, durationMs: number, error: ErrorCode | undefined): void {
  const { latency, errors, timeouts, outcomes } = instrumentsOf(operation.split("_", 1)[0]!);
  const attributes: Attributes = { operation };
  latency.record(durationMs / 1000, { ...attributes, outcome: error ?? "ok" });
  if (error) errors.add(1, { ...attributes, type: error });
  if (error === "timeout") timeouts.add(1, attributes);
  const recent = orMake(outcomes, operation, () => ({ ring: new Uint8Array(RATE_WINDOW), calls: 0 }));
  recent.ring[recent.calls++ % RATE_WINDOW] = error && error !== "cancelled" ? 1 : 0; // who goes away has not failed
}

const refusals = new WeakMap<MeterProvider, Counter>();

/** Counts a request that was refused before it reached an operation: `http.refused.total`, by type of error. */
export function recordRefusal(error: ErrorCode): void {
  const provider = metrics.getMeterProvider();
  const counter = orMake(refusals, provider, () =>
    provider
      .getMeter("cairn", VERSION)
      .createCounter("http.refused.total", { description: "Requests that reached no operation, by type of error" }),
  );
  counter.add(1, { type: error });
}

function instrumentsOf(noun: string): Instruments {
  const provider = metrics.getMeterProvider();
  const nouns = orMake(known, provider, () => new Map<string, Instruments>());
  return orMake(nouns, noun, () => create(provider, noun));
}

function orMake<K, V>(map: { get(key: K): V | undefined; set(key: K, value: V): unknown }, key: K, make: () => V): V {
  const found = map.get(key);
  if (found !== undefined) return found;
  const made = make();
  map.set(key, made);
  return made;
}

function create(provider: MeterProvider, noun: string): Instruments {
  const meter = provider.getMeter("cairn", VERSION);
  const outcomes: Instruments["outcomes"] = new Map();
  meter
    .createObservableGauge(`${noun}.error_rate`, { description: `Share of the last ${RATE_WINDOW} calls of an operation that failed` })
    .addCallback((result) => {
      for (const [operation, { ring, calls }] of outcomes) {
        const seen = Math.min(calls, RATE_WINDOW);
        result.observe(ring.subarray(0, seen).reduce((sum, failed) => sum + failed, 0) / seen, { operation });
      }
    });
  return {
    latency: meter.createHistogram(`${noun}.latency`, {
      description: "How long operations took",
      unit: "s",
      advice: { explicitBucketBoundaries: LATENCY_BOUNDARIES },
    }),
    errors: meter.createCounter(`${noun}.errors.total`, { description: "Operations that failed, by type of error" }),
    timeouts: meter.createCounter(`${noun}.timeout_count`, { description: "Operations whose time was up" }),
    outcomes,
  };
}
