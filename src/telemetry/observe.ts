import { context, propagation, type Span, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { asCairnError, type CairnError, type ErrorCode } from "../model/errors.ts";
import { VERSION } from "../model/version.ts";
import type { Log } from "../ports/log.ts";
import { recordCall } from "./operation-metrics.ts";
import { redact } from "./redact.ts";

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
      span.setAttribute("cairn.duration_ms", durationMs);
      log?.info({ ...fields, ...traceOf(span), duration_ms: rounded(durationMs) }, `${operation} done`);
      return result;
    } catch (thrown) {
      const error = asCairnError(thrown);
      const durationMs = performance.now() - startedAt;
      recordCall(operation, durationMs, error.code);
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

function parentOf({ traceparent, tracestate }: ObservedCall) {
  if (traceparent === undefined) return context.active();
  return propagation.extract(context.active(), { traceparent, ...(tracestate === undefined ? {} : { tracestate }) });
}

function recordFailure(span: Span, error: CairnError): void {
  if (!span.isRecording()) return;
  span.setStatus({ code: SpanStatusCode.ERROR, message: redact(`${error.code}: ${error.message}`) });
  if (error.code !== "internal") return;
  const cause = error.cause instanceof Error ? error.cause : error;
  span.recordException({ name: cause.name, message: redact(cause.message), stack: redact(cause.stack ?? "") });
}

/** The trace of a log line, where there is one. */
function traceOf(span: Span): { readonly trace_id?: string } {
  return span.isRecording() ? { trace_id: span.spanContext().traceId } : {};
}

function rounded(ms: number): number {
  return Math.round(ms * 100) / 100;
}
