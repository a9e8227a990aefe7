import { z } from "zod";
import { CairnError } from "../../model/errors.ts";
import { waitLimitMs } from "../../scheduling/calls.ts";

export interface QdrantOptions {
  readonly url: string;
  readonly apiKey?: string | undefined;
  /** Milliseconds for one request; default five seconds. */
  readonly timeoutMs?: number | undefined;
}

/**
 * What a failure concerns: every request to the server, the requests of one tenant, or only this call, whose caller had less time than
 * the server is allowed.
 */
export type FailureScope = "server" | "tenant" | "call";

/** Sends one request and returns the validated answer. */
export type QdrantRequest = <Schema extends z.ZodType>(
  schema: Schema,
  method: "GET" | "PUT" | "POST" | "DELETE",
  path: string,
  body: unknown,
  signal: AbortSignal | undefined,
) => Promise<z.output<Schema>>;

const TIMEOUT_MS = 5_000;

/** Statuses that any other request would get as well: a refused key, and a server or proxy that is not ready. */
const SERVER_STATUSES: readonly number[] = [401, 502, 503, 504];

export function qdrantRequest({ url, apiKey, timeoutMs = TIMEOUT_MS }: QdrantOptions): QdrantRequest {
  const base = url.replace(/(?<!\/)\/+$/, "");
  return async (schema, method, path, body, signal) => {
    // The database can answer instead if the call has time left.
    const limitMs = Math.floor(Math.min(timeoutMs, waitLimitMs(Number.POSITIVE_INFINITY) / 2));
    const timeout = AbortSignal.timeout(limitMs);
    let response: Response;
    let text: string;
    try {
      response = await fetch(base + path, {
        method,
        headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...(apiKey ? { "api-key": apiKey } : {}) },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
        redirect: "error", // a key must not follow a redirect to another host
      });
      text = await response.text();
    } catch (cause) {
      signal?.throwIfAborted();
      if (!timeout.aborted) throw failure("server", "Qdrant does not answer: it cannot be reached. Check qdrant.url.", { cause });
      // A slow query says nothing about those of other projects.
      const scope = limitMs < timeoutMs ? "call" : "tenant";
      throw failure(scope, `Qdrant does not answer: no answer within ${limitMs} ms. Check qdrant.url.`, { cause });
    }
    if (!response.ok) throw refusal(response.status, text);
    const parsed = schema.safeParse(readJson(text));
    if (!parsed.success) throw failure("tenant", "Qdrant returned an unexpected response.");
    return parsed.data;
  };
}

/** Returns the HTTP status that Qdrant refused a request with. */
export function statusOf(error: unknown): number | undefined {
  const status = error instanceof CairnError ? error.details?.status : undefined;
  return typeof status === "number" ? status : undefined;
}

/** Returns what a failure concerns. A failure of the database concerns its project only. */
export function scopeOf(error: unknown): FailureScope {
  const scope = error instanceof CairnError ? error.details?.scope : undefined;
  return scope === "server" || scope === "call" ? scope : "tenant";
}

export function failure(scope: FailureScope, message: string, { status, cause }: { status?: number; cause?: unknown } = {}): CairnError {
  return new CairnError("unavailable", message, { details: { scope, ...(status === undefined ? {} : { status }) }, cause });
}

/** Quotes Qdrant only on a mistake in the request: the text of a failed server can name other tenants. */
function refusal(status: number, text: string): CairnError {
  if (SERVER_STATUSES.includes(status)) return failure("server", `Qdrant refused the request: status ${status}.`, { status });
  const reason = status < 500 ? errorOf(text) : undefined;
  return failure("tenant", `Qdrant refused the request: ${reason ?? `status ${status}`}`, { status });
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // not JSON, such as a page of a proxy
  }
}

function errorOf(text: string): string | undefined {
  const parsed = z.object({ status: z.object({ error: z.string() }) }).safeParse(readJson(text));
  return parsed.success ? parsed.data.status.error.slice(0, 500) : undefined;
}
