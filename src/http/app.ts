import { type Context, Hono } from "hono";
import { asCairnError, CairnError } from "../model/errors.ts";
import { newId } from "../model/ids.ts";
import { LIMITS } from "../model/limits.ts";
import type { Cairn } from "../operations/cairn.ts";
import { type Caller, invoke } from "../operations/invoke.ts";
import { operations as allOperations } from "../operations/list.ts";
import type { Operation } from "../operations/operation.ts";
import { servicesOf } from "../operations/validate-library.ts";
import type { Log } from "../ports/log.ts";
import type { RateLimit } from "../scheduling/rate-limit.ts";
import { LOG_LEVEL, recordRefusal } from "../telemetry/observe.ts";
import { admission, type CallKind, callerSlots, refuseForeignSession, refuseOtherSites } from "./admission.ts";
import type { AppEnv } from "./app-env.ts";
import type { Connection } from "./client-address.ts";
import { consoleFiles } from "./console-files.ts";
import { type DocsPage, docsPage } from "./docs-page.ts";
import { errorResponse, HttpRefusal } from "./errors.ts";
import { EVENT_PATH, type EventStreamOptions, openEventStream } from "./event-stream.ts";
import { healthCheck } from "./health.ts";
import { limitBody, readJson, readQuery } from "./input.ts";
import { openApi } from "./openapi.ts";
import { type Route, routeOf } from "./routes.ts";
import { addSessionRoutes } from "./session-routes.ts";

/** What a mounted handler gets with a request that was admitted. */
export interface MountContext {
  readonly caller: Caller;
  readonly requestId: string;
}

/** Answers the requests of a path that is mounted next to the API. */
export type MountedHandler = (request: Request, context: MountContext) => Response | Promise<Response>;

/** Options of `httpHandler`. */
export interface HttpOptions {
  readonly cairn: Cairn;
  /** What is offered; everything by default. */
  readonly operations?: readonly Operation[];
  /** Returns the token whose bearer is the local administrator. Without it only API keys are accepted. */
  readonly localToken?: () => Promise<string | undefined>;
  /** Addresses and CIDR ranges of reverse proxies whose X-Forwarded-For selects the address for rate limits. They grant no access. */
  readonly trustedProxies?: readonly string[];
  /** Web pages of these origins may call, such as `http://localhost:5173`. */
  readonly allowedOrigins?: readonly string[];
  /** Per key, or per client address where a request has no valid credential. `false` for no limit. The local token has none. */
  readonly rateLimit?: RateLimit | false;
  /** Requests in flight above which the server returns 503. */
  readonly maxConcurrent?: number;
  /** Requests in flight of one caller above which it gets 429; by default a quarter of `maxConcurrent`. */
  readonly maxConcurrentPerCaller?: number;
  /** Event streams that one caller may have open. Above that it gets 429. */
  readonly maxStreamsPerCaller?: number;
  /** Whole handlers under a path, such as `/mcp`. They are only called for callers that were let in. */
  readonly mount?: Readonly<Record<string, MountedHandler>>;
  /** The text of `/metrics`; without it there is no such page. */
  readonly metrics?: () => Promise<string>;
  readonly log?: Log;
  /** Whether the server is shutting down. Its health then reports it as not ready. */
  readonly isDraining?: () => boolean;
  /** Aborted when the server shuts down: event streams end, and their clients connect again elsewhere. */
  readonly closing?: AbortSignal;
  /** Times of the event streams, for tests. */
  readonly eventStreams?: Pick<EventStreamOptions, "heartbeatMs" | "stalledMs" | "lifetimeMs">;
  /** A clock for the rate limits, for tests. */
  readonly nowMs?: () => number;
}

/** Answers one HTTP request; never rejects. */
export type HttpHandler = (request: Request, connection?: Connection) => Promise<Response>;

const METHODS = ["GET", "HEAD", "POST", "PATCH", "DELETE"];

export const DEFAULT_MAX_CONCURRENT = 256;
const DEFAULT_MAX_STREAMS_PER_CALLER = 256;

/** The HTTP API as a plain function of a request, for any host that speaks fetch. */
export function httpHandler(options: HttpOptions): HttpHandler {
  const { log, maxConcurrent = DEFAULT_MAX_CONCURRENT, allowedOrigins = [] } = options;
  const app = routes(options);
  const { localToken, trustedProxies, rateLimit, nowMs } = options;
  const { verify: verifyKey, exchangeUsage } = options.cairn.keys;
  const admit = admission({ verifyKey, localToken, trustedProxies, rateLimit, nowMs, exchangeUsage });
  let running = 0;

  return async (request, connection = {}) => {
    const requestId = safeRequestId(request.headers.get("x-request-id")) ?? newId();
    let response: Response;
    running++;
    const isOver = running > maxConcurrent; // decided on arrival, not after later requests have been counted
    try {
      const isProbe = isHealthPath(new URL(request.url).pathname);
      const identity = await admit(request.headers, connection, isProbe);
      if (isOver && !isProbe)
        throw new CairnError("unavailable", "Too many requests at once. Try again in a moment.", { retryAfterMs: 1_000 });
      refuseOtherSites(request, allowedOrigins);
      if (identity.isSession && identity.caller) refuseForeignSession(request);
      response = await app.fetch(request, { requestId, identity });
    } catch (error) {
      response = refuse(error, request, requestId, log);
    } finally {
      running--;
    }
    return withCommonHeaders(response, requestId, request.headers.get("origin"), allowedOrigins);
  };
}

const HEALTH_PATHS = ["/health", "/health/live", "/health/ready"];
const isHealthPath = (path: string) => HEALTH_PATHS.includes(path);

function routes(options: HttpOptions): Hono<AppEnv> {
  const { operations = allOperations, mount = {}, log, metrics } = options;
  const cairn = servicesOf(options.cairn);
  const callerOf = (c: Context<AppEnv>): Caller => {
    const { caller, refusal } = c.env.identity;
    if (!caller) throw refusal;
    return caller;
  };
  const { maxConcurrent = DEFAULT_MAX_CONCURRENT, maxStreamsPerCaller = DEFAULT_MAX_STREAMS_PER_CALLER } = options;
  const slots = callerSlots({ calls: options.maxConcurrentPerCaller ?? Math.ceil(maxConcurrent / 4), streams: maxStreamsPerCaller });
  const guard = (kind: CallKind, call: (c: Context<AppEnv>, caller: Caller) => Promise<Response>) => async (c: Context<AppEnv>) => {
    const caller = callerOf(c);
    return slots.run(caller.keyId ?? "local", kind, () => call(c, caller));
  };
  const health = healthCheck(cairn, options.isDraining ?? (() => false));
  const app = new Hono<AppEnv>();

  for (const operation of operations) {
    const route = routeOf(operation);
    app.on(
      route.method,
      route.path.replace(/\{(\w+)\}/g, ":$1"),
      guard("operation", async (c, caller) => {
        const input = await inputOf(c, operation, route);
        try {
          const output = await invoke(cairn, operation, input, {
            caller,
            signal: c.req.raw.signal,
            traceparent: c.req.header("traceparent"),
            tracestate: c.req.header("tracestate"),
            log,
            edge: "http",
            requestId: c.env.requestId,
          });
          return json(output, route.status);
        } catch (error) {
          return errorResponse(error, c.env.requestId); // the log knows it from invoke
        }
      }),
    );
  }

  const streams = { events: cairn.events, closing: options.closing, ...options.eventStreams };
  app.get(
    EVENT_PATH,
    guard("listen", (c, caller) => openEventStream(c.req.raw, caller, streams)),
  );

  for (const [path, handler] of Object.entries(mount)) {
    const call = async (c: Context<AppEnv>, caller: Caller) =>
      handler(limitBody(c.req.raw, LIMITS.bodyBytes), { caller, requestId: c.env.requestId });
    for (const under of [path, `${path}/*`]) {
      app.get(under, guard("listen", call));
      app.all(under, guard("mounted", call));
    }
  }

  const indexesFolders = operations.some(({ name }) => name === "code_index");
  const credentials = { verifyKey: cairn.keys.verify, localToken: options.localToken };
  addSessionRoutes(app, { ...credentials, nowMs: options.nowMs ?? Date.now, indexesFolders }, callerOf);
  const pageFiles = consoleFiles();
  app.get("/", (c) => pageFiles.page(c.req.raw));
  app.get("/assets/:name", (c) => pageFiles.asset(c.req.raw, c.req.param("name")));
  const pages = documents(operations);
  for (const [path, page] of Object.entries(pages)) app.get(path, (c) => page(c.req.raw));
  for (const path of HEALTH_PATHS)
    app.get(path, async (c) => {
      const { checks, knowledge, ...state } = await health();
      // Reasons can name paths and hosts, and the figures are about what all projects share.
      const seesAll = c.env.identity.caller?.projects === "all";
      const body = seesAll ? { ...state, checks, ...(knowledge && { knowledge }) } : state;
      return json(body, state.ready || path === "/health/live" ? 200 : 503);
    });
  if (metrics)
    app.get("/metrics", async (c) => {
      const caller = callerOf(c);
      if (caller.projects !== "all")
        throw new CairnError("forbidden", "The metrics are about all projects. Use the local token or a key for all projects.");
      return new Response(await metrics(), { headers: { "content-type": "text/plain; version=0.0.4; charset=utf-8" } });
    });

  app.notFound((c) => {
    const allowed = METHODS.filter((method) => app.router.match(method === "HEAD" ? "GET" : method, c.req.path)[0].length > 0);
    if (allowed.length === 0) throw new CairnError("not_found", "There is nothing at this path. /openapi.json and /docs list the paths.");
    const allow = [...allowed, "OPTIONS"].join(", ");
    if (c.req.method === "OPTIONS") return new Response(null, { status: 204, headers: { allow } });
    throw new HttpRefusal(405, `${c.req.method} is not possible here. Use ${allow}.`, { allow });
  });
  app.onError((error, c) => refuse(error, c.req.raw, c.env.requestId, log));
  return app;
}

async function inputOf(c: Context<AppEnv>, operation: Operation, route: Route): Promise<unknown> {
  const url = new URL(c.req.url);
  const path = Object.fromEntries(route.pathFields.map((field) => [field, c.req.param(field)]));
  const input = route.hasBody
    ? await readJson(c.req.raw, operation.limits.bodyBytes ?? LIMITS.bodyBytes)
    : readQuery(operation.input, url.searchParams);
  if (route.pathFields.length === 0 || typeof input !== "object" || input === null || Array.isArray(input)) return input;
  const twice = route.pathFields.find((field) => Object.hasOwn(input, field));
  if (twice) throw new CairnError("invalid_input", `${twice}: the path names it already. Leave it out of the body and the query.`);
  return { ...input, ...path };
}

/** Returns the pages about the API. They are the same for every caller and built by the first request. */
function documents(operations: readonly Operation[]): Record<string, (request: Request) => Response> {
  let description: string | undefined;
  let page: DocsPage | undefined;
  const docs = (request: Request) => {
    page ??= docsPage(operations);
    const headers = { "content-type": "text/html; charset=utf-8", "content-security-policy": page.policy };
    return new Response(page.html(new URL(request.url).origin), { headers });
  };
  return {
    "/openapi.json": () => {
      description ??= JSON.stringify(openApi(operations));
      return new Response(description, { headers: { "content-type": "application/json; charset=utf-8" } });
    },
    "/docs": docs,
  };
}

function json(body: unknown, status: number): Response {
  return new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json; charset=utf-8" } });
}

/** Returns the request id of a client if it is safe in a header and a log line. */
function safeRequestId(id: string | null): string | undefined {
  return id !== null && /^[A-Za-z0-9._:-]{1,128}$/.test(id) ? id : undefined;
}

/** Longer paths belong to no operation; a flood of them must not fill the log. */
const LOGGED_PATH_CHARS = 200;

/** Reports a request that reached no operation. */
function refuse(thrown: unknown, request: Request, requestId: string, log: Log | undefined): Response {
  const error = asCairnError(thrown);
  recordRefusal(error.code);
  const fields = {
    request_id: requestId,
    method: request.method,
    path: new URL(request.url).pathname.slice(0, LOGGED_PATH_CHARS),
    code: error.code,
  };
  const err = error.cause ?? (error.code === "internal" ? error : undefined);
  log?.[LOG_LEVEL[error.code]](err === undefined ? fields : { ...fields, err }, error.message);
  return errorResponse(error, requestId);
}

function withCommonHeaders(response: Response, requestId: string, origin: string | null, allowedOrigins: readonly string[]): Response {
  const extra: Record<string, string> = {
    "x-request-id": requestId,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
  };
  if (!response.headers.has("cache-control")) extra["cache-control"] = "no-store";
  if (!response.headers.has("content-security-policy")) extra["content-security-policy"] = "default-src 'none'; frame-ancestors 'none'";
  if (allowedOrigins.length > 0) extra.vary = [response.headers.get("vary"), "origin"].filter(Boolean).join(", ");
  if (origin !== null && allowedOrigins.includes(origin)) {
    extra["access-control-allow-origin"] = origin;
    extra["access-control-allow-methods"] = "GET, POST, PATCH, DELETE";
    extra["access-control-allow-headers"] =
      "authorization, content-type, x-api-key, x-request-id, traceparent, tracestate, mcp-protocol-version, mcp-session-id, last-event-id";
    extra["access-control-expose-headers"] = "x-request-id, retry-after, mcp-session-id";
    extra["access-control-max-age"] = "600";
    extra["cross-origin-resource-policy"] = "cross-origin";
  }
  try {
    for (const [name, value] of Object.entries(extra)) response.headers.set(name, value);
    return response;
  } catch {
    // A mounted handler may answer with headers that cannot be changed.
    return new Response(response.body, { status: response.status, headers: { ...Object.fromEntries(response.headers), ...extra } });
  }
}
