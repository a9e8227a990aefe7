import { asCairnError, CairnError, type ErrorCode, WIRE_NAME } from "../model/errors.ts";

/** A new code does not compile until it has a status. 499 is never read: the client has gone. */
export const HTTP_STATUS: Record<ErrorCode, number> = {
  invalid_input: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  too_large: 413,
  rate_limited: 429,
  cancelled: 499,
  internal: 500,
  unavailable: 503,
  timeout: 504,
};

/** Bad input that HTTP itself has a finer word for: 405 for the method, 415 for the content type. */
export class HttpRefusal extends CairnError {
  readonly status: 405 | 415;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: 405 | 415, message: string, headers: Readonly<Record<string, string>> = {}) {
    super("invalid_input", message);
    this.status = status;
    this.headers = headers;
  }
}

/** Milliseconds that a client waits after a 503 whose end nobody can foresee, such as a full disk: someone has to act first. */
const UNKNOWN_RETRY_MS = 30_000;

/** The one form of every error: `{ error: { code, name, message, details?, request_id } }`. */
export function errorResponse(thrown: unknown, requestId: string): Response {
  const error = asCairnError(thrown);
  const headers = new Headers({ "content-type": "application/json; charset=utf-8" });
  const retryAfterMs = error.retryAfterMs ?? (error.code === "unavailable" ? UNKNOWN_RETRY_MS : undefined);
  if (retryAfterMs !== undefined) headers.set("retry-after", String(Math.max(1, Math.ceil(retryAfterMs / 1000))));
  if (error.code === "unauthorized") headers.set("www-authenticate", 'Bearer realm="cairn"');
  if (error instanceof HttpRefusal) for (const [name, value] of Object.entries(error.headers)) headers.set(name, value);
  const body = {
    error: { code: error.code, name: WIRE_NAME[error.code], message: error.message, details: error.details, request_id: requestId },
  };
  return new Response(JSON.stringify(body), {
    status: error instanceof HttpRefusal ? error.status : HTTP_STATUS[error.code],
    headers,
  });
}
