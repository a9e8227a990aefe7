import { CairnError } from "../../model/errors.ts";
import { retry, SYSTEM_CLOCK } from "../../scheduling/retry.ts";
import { redactMessage } from "../../text/redact-message.ts";
import type { Breaker } from "./breaker.ts";
import type { Pace } from "./pace.ts";

/** An error response of the provider, in its words. */
export interface Refusal {
  readonly status: number;
  readonly message: string;
  /** Whether the provider states that a retry may succeed; otherwise the status decides. */
  readonly retry?: boolean | undefined;
}

export interface CallPolicy {
  /** Retries after the first attempt. */
  readonly retries: number;
  readonly firstDelayMs: number;
  readonly longestDelayMs: number;
  /** Milliseconds for one attempt. */
  readonly timeoutMs: number;
}

export const DEFAULT_POLICY: CallPolicy = { retries: 4, firstDelayMs: 500, longestDelayMs: 20_000, timeoutMs: 30_000 };

export interface ProviderOptions {
  /** Name in messages: OpenAI, TEI. */
  readonly name: string;
  readonly policy?: Partial<CallPolicy>;
  readonly breaker: Breaker;
  readonly pace: Pace;
  /** Parses the provider's error body, or describes a body that it cannot parse. */
  readonly refusalOf: (status: number, body: string) => Refusal;
  readonly fetch?: typeof fetch;
  readonly sleep?: (ms: number, signal?: AbortSignal) => Promise<void>;
  readonly random?: () => number;
}

export interface CallRequest {
  readonly url: string;
  readonly method: "GET" | "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
}

/** Raised when the request is too large for the provider, so that the caller can split it. */
export class RequestTooLarge extends Error {
  override readonly name = "RequestTooLarge";
}

/** Limit of a response in bytes: 2,048 vectors of 3,072 numbers as text are about 130 MB. */
const ANSWER_BYTES_MAX = 256 * 1024 * 1024;

/** Makes one JSON call to a provider: rate-limited, timed and retried with back-off. Fails at once while the breaker is open. */
export async function callProvider(options: ProviderOptions, request: CallRequest): Promise<unknown> {
  const policy = { ...DEFAULT_POLICY, ...options.policy };
  const { name, breaker, pace, sleep = SYSTEM_CLOCK.sleep, random = Math.random } = options;
  let isRetryable = false;
  const attempt = async () => {
    isRetryable = false;
    breaker.assertClosed(name);
    await pace.turn(request.signal);
    const outcome = await tryOnce(options, policy, request);
    if ("answer" in outcome) {
      breaker.succeeded();
      return outcome.answer;
    }
    if (outcome.refusal.status === 413) throw new RequestTooLarge(outcome.refusal.message);
    isRetryable = outcome.refusal.retry ?? isTransient(outcome.refusal.status);
    if (isRetryable) breaker.failed();
    throw failure(name, outcome.refusal, isRetryable, outcome.retryAfterMs);
  };
  return retry(attempt, {
    backoff: { firstMs: policy.firstDelayMs, maxMs: policy.longestDelayMs },
    isRetryable: () => isRetryable,
    attempts: policy.retries + 1,
    signal: request.signal,
    clock: { ...SYSTEM_CLOCK, sleep, random },
  });
}

type Outcome = { readonly answer: unknown } | { readonly refusal: Refusal; readonly retryAfterMs?: number | undefined };

async function tryOnce(options: ProviderOptions, policy: CallPolicy, request: CallRequest): Promise<Outcome> {
  const timeout = AbortSignal.timeout(policy.timeoutMs);
  const signal = request.signal ? AbortSignal.any([request.signal, timeout]) : timeout;
  try {
    const response = await (options.fetch ?? fetch)(request.url, {
      method: request.method,
      headers: {
        accept: "application/json",
        ...(request.body === undefined ? {} : { "content-type": "application/json" }),
        ...request.headers,
      },
      ...(request.body === undefined ? {} : { body: JSON.stringify(request.body) }),
      signal,
      redirect: "error", // a key must not follow a redirect to another host
    });
    const text = await readText(response);
    if (!response.ok)
      return { refusal: withRetryHeader(response, options.refusalOf(response.status, text)), retryAfterMs: retryAfter(response.headers) };
    try {
      return { answer: JSON.parse(text) };
    } catch {
      return { refusal: { status: 502, message: "its response is not JSON" } };
    }
  } catch (error) {
    request.signal?.throwIfAborted();
    const message = timeout.aborted ? `no answer within ${policy.timeoutMs} ms` : `it cannot be reached (${causeOf(error)})`;
    return { refusal: { status: 503, message } };
  }
}

async function readText(response: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of response.body ?? []) {
    bytes += part.byteLength;
    if (bytes > ANSWER_BYTES_MAX) throw new Error("the response is larger than 256 MB");
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}

/** Adds the provider's header on retries, which overrides the status. */
function withRetryHeader(response: Response, refusal: Refusal): Refusal {
  const header = response.headers.get("x-should-retry");
  return header === "true" || header === "false" ? { ...refusal, retry: header === "true" } : refusal;
}

function isTransient(status: number): boolean {
  return status === 408 || status === 409 || status === 424 || status === 429 || status >= 500;
}

function retryAfter(headers: Headers): number | undefined {
  const ms = Number(headers.get("retry-after-ms") ?? Number.NaN);
  if (Number.isFinite(ms) && ms >= 0) return ms;
  const header = headers.get("retry-after");
  if (header === null) return undefined;
  const seconds = Number(header);
  if (Number.isFinite(seconds)) return Math.max(0, seconds * 1_000);
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}

/** Makes the error of a failed call, without secrets: providers quote the request with its key, and the reason may be stored. */
function failure(name: string, { status, message: said }: Refusal, passing: boolean, retryAfterMs: number | undefined): CairnError {
  const message = redactMessage(said);
  if (status === 401 || status === 403)
    return new CairnError("unavailable", `${name} refused the key: ${message}. Check embedder.api_key.`);
  return new CairnError("unavailable", passing ? `${name} does not answer: ${message}` : `${name} refused the request: ${message}`, {
    details: { status },
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

function causeOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return cause instanceof Error ? ((cause as NodeJS.ErrnoException).code ?? cause.message) : String(cause);
}
