import { routeOf } from "../../http/routes.ts";
import { asCairnError, CairnError, type ErrorCode, WIRE_NAME } from "../../model/errors.ts";
import type { Operation } from "../../operations/operation.ts";

/** A Cairn server that is called over HTTP. The description of an operation states its route. */
export interface ApiClient {
  readonly url: string;
  /** Takes and returns wire data. */
  call(operation: Operation, input: Readonly<Record<string, unknown>>, signal?: AbortSignal): Promise<Record<string, unknown>>;
}

export interface ApiClientOptions {
  readonly url: string;
  /** Returns the API key or token to send. Called before every request. */
  readonly credential?: (() => Promise<string | undefined>) | undefined;
}

/** Milliseconds after the time limit of an operation, which the server enforces, until a missing response is an error. */
const ANSWER_GRACE_MS = 10_000;
const MAX_ERROR_CHARS = 2_000;

export function apiClient({ url, credential }: ApiClientOptions): ApiClient {
  const base = url.replace(/(?<!\/)\/+$/, "");
  return {
    url: base,
    async call(operation, input, signal) {
      const { target, init } = requestOf(base, operation, input);
      const limit = AbortSignal.timeout(operation.limits.timeoutMs + ANSWER_GRACE_MS);
      const secret = await credential?.();
      const headers = { ...init.headers, accept: "application/json", ...(secret && { authorization: `Bearer ${secret}` }) };
      let response: Response;
      let text: string;
      try {
        response = await fetch(target, { ...init, headers, signal: signal ? AbortSignal.any([signal, limit]) : limit, redirect: "error" });
        text = await response.text();
      } catch (cause) {
        if (signal?.aborted || limit.aborted) throw asCairnError(signal?.aborted ? abortOf(signal) : limit.reason);
        throw new CairnError(
          "unavailable",
          `The server at ${base} cannot be reached. Check that it is running and that the address is correct.`,
          { cause },
        );
      }
      const body = parseObject(text);
      if (response.ok && body) return body;
      throw errorOf(response, body, text, base);
    },
  };
}

function abortOf(signal: AbortSignal): unknown {
  return signal.reason instanceof Error ? signal.reason : new DOMException("The caller aborted the request.", "AbortError");
}

function requestOf(base: string, operation: Operation, input: Readonly<Record<string, unknown>>) {
  const route = routeOf(operation);
  const path = route.path.replace(/\{(\w+)\}/g, (_, field: string) => encodeURIComponent(String(input[field])));
  const rest = Object.entries(input).filter(([field, value]) => value !== undefined && !route.pathFields.includes(field));
  const target = new URL(base + path);
  if (route.hasBody)
    return {
      target,
      init: { method: route.method, headers: { "content-type": "application/json" }, body: JSON.stringify(Object.fromEntries(rest)) },
    };
  for (const [field, value] of rest)
    for (const one of Array.isArray(value) ? value : [value])
      target.searchParams.append(field, typeof one === "object" ? JSON.stringify(one) : String(one));
  return { target, init: { method: route.method, headers: {} } };
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined; // for example the page of a proxy
  }
}

/** Returns the error that the server reported. A response that is not from Cairn is classified by its status. */
function errorOf(response: Response, body: Record<string, unknown> | undefined, text: string, base: string): CairnError {
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  const retry = Number.isFinite(seconds) && seconds >= 0 ? { retryAfterMs: Math.min(seconds, 3_600) * 1_000 } : {};
  const reported = body?.error as { code?: unknown; message?: unknown; details?: unknown } | undefined;
  if (typeof reported?.code === "string" && reported.code in WIRE_NAME && typeof reported.message === "string") {
    const details =
      typeof reported.details === "object" && reported.details !== null ? { details: reported.details as Record<string, unknown> } : {};
    return new CairnError(reported.code as ErrorCode, reported.message.slice(0, MAX_ERROR_CHARS), { ...details, ...retry });
  }
  const { status } = response;
  const code: ErrorCode = status === 429 ? "rate_limited" : status === 404 ? "not_found" : status === 401 ? "unauthorized" : "unavailable";
  return new CairnError(code, `The response from ${base} is not from a Cairn server: ${status} ${text.slice(0, 100)}`, retry);
}
