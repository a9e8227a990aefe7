import { createHash, timingSafeEqual } from "node:crypto";
import type { ApiKey } from "../model/api-key.ts";
import { CairnError } from "../model/errors.ts";
import { type Caller, LOCAL_CALLER } from "../operations/invoke.ts";
import { DEFAULT_RATE_LIMIT, type ExchangeUsage, type RateLimit, rateLimiter } from "../scheduling/rate-limit.ts";
import { addressGroup } from "../text/networks.ts";
import { type Connection, clientAddress } from "./client-address.ts";
import { openSession } from "./session-cookie.ts";

export interface AdmissionOptions extends Credentials {
  readonly trustedProxies?: readonly string[] | undefined;
  readonly rateLimit?: RateLimit | false | undefined;
  readonly nowMs?: (() => number) | undefined;
  /** Makes the limit of a key hold over several servers. Limits of addresses hold per server. */
  readonly exchangeUsage?: ExchangeUsage | undefined;
}

/**
 * Returns the function that every request passes first, whatever its answer: it identifies the caller and takes one token of its rate
 * limit. Probes without a credential have a bucket of their own, so that a flood of other requests from the same address (a proxy's, for
 * instance) does not make the server look dead.
 */
export function admission({
  verifyKey,
  localToken,
  trustedProxies = [],
  rateLimit = DEFAULT_RATE_LIMIT,
  nowMs,
  exchangeUsage,
}: AdmissionOptions) {
  const credentials: Credentials = { verifyKey, localToken };
  const sessionClock = nowMs ?? Date.now;
  const addressOf = clientAddress(trustedProxies);
  const limiter = (exchange?: ExchangeUsage) => (rateLimit === false ? () => {} : rateLimiter(rateLimit, nowMs, exchange));
  const takeOfAddress = limiter();
  const takeOfKey = limiter(exchangeUsage);
  return async (headers: Headers, connection: Connection, isProbe: boolean): Promise<Identity> => {
    const identity = await identify(presentedCredential(headers, sessionClock()), credentials);
    if (!identity.caller) takeOfAddress(`${isProbe ? "probe" : "address"}:${addressGroup(addressOf(headers, connection))}`);
    else if (identity.caller.keyId !== undefined) takeOfKey(identity.caller.keyId);
    return identity;
  };
}

export interface Credentials {
  readonly verifyKey: (presented: string) => Promise<ApiKey | undefined>;
  /** Returns the token of the local user; without it only keys are accepted. */
  readonly localToken: (() => Promise<string | undefined>) | undefined;
}

/** Who makes a request: a caller with a valid credential, or nobody and why. `isSession` if the credential came in a browser's session. */
export type Identity = { readonly isSession: boolean } & (
  | { readonly caller: Caller; readonly refusal?: undefined }
  | { readonly caller?: undefined; readonly refusal: CairnError }
);

/** The credential of a request, as it was sent. */
export interface Presented {
  readonly credential: string | undefined;
  readonly isSession: boolean;
}

/**
 * Identifies a caller by its credential and by nothing else: behind a reverse proxy every request comes from loopback, and no header
 * proves the opposite.
 */
export async function identify({ credential, isSession }: Presented, credentials: Credentials): Promise<Identity> {
  const refuse = (message: string): Identity => ({ isSession, refusal: new CairnError("unauthorized", message) });
  if (credential === undefined)
    return refuse(
      "This call has no credential. Send Authorization: Bearer <credential>: the local token (`cairn token` prints it) or an API key (`cairn key create` makes one).",
    );
  try {
    const token = await credentials.localToken?.();
    // Compared also where there is no token, so that the time of an answer does not depend on it; an empty token matches nothing.
    if (sameSecret(credential, token ?? "") && token) return { isSession, caller: LOCAL_CALLER };
    const key = await credentials.verifyKey(credential);
    if (key) return { isSession, caller: { access: key.access, projects: key.projects, keyId: key.id } };
  } catch (cause) {
    // The reason names files of the server; it is for the log.
    const refusal = new CairnError("unavailable", "Credentials cannot be checked now. The server's log has the reason.", { cause });
    return { isSession, refusal };
  }
  return refuse(
    "This credential is not valid. Use the local token (`cairn token` prints it) or an API key that is neither expired nor revoked.",
  );
}

/**
 * Returns the credential of a request: from its headers, else from a browser's session. Another scheme than Bearer is an invalid
 * credential, not a missing one.
 */
function presentedCredential(headers: Headers, nowMs: number): Presented {
  const authorization = headers.get("authorization");
  if (authorization !== null) return { credential: /^Bearer +(\S+) *$/i.exec(authorization)?.[1] ?? "invalid", isSession: false };
  const key = headers.get("x-api-key");
  if (key !== null) return { credential: key, isSession: false };
  return { credential: openSession(headers, nowMs), isSession: true };
}

/** Compares in constant time. Hashes have the same length whatever was presented. */
function sameSecret(a: string, b: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}

/** Paths of documents that are identical for every caller, contain no secret and cost no work. A link on any page may lead there. */
const PUBLIC_DOCUMENTS: ReadonlySet<string> = new Set(["/", "/docs", "/openapi.json"]);

/**
 * Refuses what a page of another site makes a browser send. A GET for an image, script or link carries no Origin, so only
 * `Sec-Fetch-Site` shows where it comes from. Programs send no such header and pass; so do typed addresses (`none`), the
 * server's own pages (`same-origin`) and pages of an allowed origin, whose calls carry an Origin.
 */
export function refuseOtherSites(request: Request, allowedOrigins: readonly string[]): void {
  const site = request.headers.get("sec-fetch-site");
  if (site === null || site === "none" || site === "same-origin") return;
  const origin = request.headers.get("origin");
  if (origin !== null && allowedOrigins.includes(origin)) return;
  if ((request.method === "GET" || request.method === "HEAD") && PUBLIC_DOCUMENTS.has(new URL(request.url).pathname)) return;
  throw new CairnError(
    "forbidden",
    "Pages of other sites may not call this server. Add the page's origin to the setting http.allowed_origins to allow its calls.",
  );
}

/**
 * Refuses a call with a browser's session unless the console itself makes it. The page's half of the session is a header that no
 * other origin can send; this check holds also for a page that got hold of it, and for origins that `http.allowed_origins` names.
 */
export function refuseForeignSession(request: Request): void {
  const site = request.headers.get("sec-fetch-site");
  const origin = request.headers.get("origin");
  if (site === null ? origin === null || hostOf(origin) === request.headers.get("host") : site === "same-origin") return;
  throw new CairnError("forbidden", "A session of the console works only in the console. Send an API key instead.");
}

function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined;
}

export interface SlotLimits {
  /** Calls of one caller that are in flight. */
  readonly calls: number;
  /** Event streams of one caller that are open: MCP clients keep one for notifications, and calls may be answered by one. */
  readonly streams: number;
}

/** `operation` never answers with a stream, `mounted` may, and `listen` opens a stream for as long as the client likes. */
export type CallKind = "operation" | "mounted" | "listen";

export interface CallerSlots {
  /** Runs a call of this caller, or raises `rate_limited` when the caller holds too much. */
  run(caller: string, kind: CallKind, call: () => Promise<Response>): Promise<Response>;
}

/** Bounds what one caller may hold of the server, so that the requests and connections that are left over serve all others. */
export function callerSlots(limits: SlotLimits): CallerSlots {
  const calls = counter();
  const streams = counter();
  // Half of the streams is left for calls that are answered by one: listening clients must not keep others from calling.
  const streamsMax: Record<CallKind, number> = {
    operation: Number.POSITIVE_INFINITY,
    mounted: limits.streams,
    listen: Math.ceil(limits.streams / 2),
  };
  return {
    async run(caller, kind, call) {
      if (calls.count(caller) >= limits.calls) throw refusal(`${limits.calls} calls in flight`);
      // Checked before the call, because what the call did cannot be undone when its answer turns out to be a stream.
      if (streams.count(caller) >= streamsMax[kind]) throw refusal(`${streamsMax[kind]} event streams open`);
      const end = calls.add(caller);
      try {
        const response = await call();
        return isStream(response) ? untilEnd(response, streams.add(caller)) : response;
      } finally {
        end();
      }
    },
  };
}

/** Counts per caller and forgets callers that have nothing. */
function counter() {
  const counts = new Map<string, number>();
  const count = (caller: string) => counts.get(caller) ?? 0;
  return {
    count,
    /** Returns the function that takes it back, which works once. */
    add(caller: string): () => void {
      counts.set(caller, count(caller) + 1);
      let open = true;
      return () => {
        if (!open) return;
        open = false;
        if (count(caller) === 1) counts.delete(caller);
        else counts.set(caller, count(caller) - 1);
      };
    },
  };
}

function isStream({ body, headers }: Response): boolean {
  return body !== null && headers.get("content-type")?.startsWith("text/event-stream") === true;
}

/** Returns the response with a body that calls `ended` when its body was sent, failed, or is no longer read because the client left. */
function untilEnd({ body, status, headers }: Response, ended: () => void): Response {
  const reader = body!.getReader();
  const watched = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) return controller.enqueue(value);
        ended();
        controller.close();
      } catch (error) {
        ended();
        controller.error(error);
      }
    },
    async cancel(reason) {
      ended();
      await reader.cancel(reason);
    },
  });
  return new Response(watched, { status, headers });
}

function refusal(held: string): CairnError {
  return new CairnError("rate_limited", `This caller has ${held} already. Let one of them end, then try again.`, { retryAfterMs: 1_000 });
}
