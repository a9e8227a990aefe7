/** The closed list of error codes. Each surface has a table keyed by it, so a new code does not compile until every surface maps it. */
export type ErrorCode =
  | "invalid_input"
  | "unauthorized"
  | "forbidden"
  | "not_found"
  | "conflict"
  | "too_large"
  | "rate_limited"
  | "cancelled"
  | "internal"
  | "unavailable"
  | "timeout";

/** The names under which the codes appear on the wire. */
export const WIRE_NAME: Record<ErrorCode, string> = {
  invalid_input: "VALIDATION_ERROR",
  unauthorized: "UNAUTHORIZED",
  forbidden: "FORBIDDEN",
  not_found: "NOT_FOUND",
  conflict: "CONFLICT",
  too_large: "TOO_LARGE",
  rate_limited: "RATE_LIMITED",
  cancelled: "CANCELLED",
  internal: "INTERNAL_ERROR",
  unavailable: "UNAVAILABLE",
  timeout: "TIMEOUT_ERROR",
};

export interface ErrorOptions {
  readonly cause?: unknown;
  /** Plain data for programs: which field, which limit, which file. Never a secret. */
  readonly details?: Readonly<Record<string, unknown>>;
  /** How long to wait before trying again, where waiting helps. */
  readonly retryAfterMs?: number;
}

const BRAND: unique symbol = Symbol.for("cairn-memory.error");

/** The one error class. The message says what happened, then what to do. */
export class CairnError extends Error {
  override readonly name = "CairnError";
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>> | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    Object.defineProperty(this, BRAND, { value: true }); // not enumerable, so that no log shows it
    this.code = code;
    this.details = options.details;
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** Recognises errors of another copy of this package too: the graphs of a program may use one, and the command that executes them another. */
Object.defineProperty(CairnError, Symbol.hasInstance, {
  value(this: unknown, value: unknown): boolean {
    const own = Function.prototype[Symbol.hasInstance].call(this as never, value);
    return own || (this === CairnError && value instanceof Error && (value as { readonly [BRAND]?: true })[BRAND] === true);
  },
});

/** A foreign error becomes `internal` with its cause; an abort keeps its meaning. */
export function asCairnError(error: unknown): CairnError {
  if (error instanceof CairnError) return error;
  if (error instanceof Error && error.name === "TimeoutError")
    return new CairnError("timeout", "The call took longer than its time limit. Try again, or ask for less.", { cause: error });
  if (error instanceof Error && error.name === "AbortError")
    return new CairnError("cancelled", "The call was cancelled by its caller.", { cause: error });
  if (isTooManyOpenFiles(error)) return tooManyOpenFiles(error);
  return new CairnError("internal", "Something went wrong inside Cairn. The log has the details; try again.", { cause: error });
}

/** Reports whether the operating system refused a file, socket or thread because too many are open. */
export function isTooManyOpenFiles(error: unknown): boolean {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  return code === "EMFILE" || code === "ENFILE" || (code === "ERR_WORKER_INIT_FAILED" && /E[MN]FILE/.test(String(message)));
}

/** Returns the error of a process that has no file descriptors left. Waiting helps: databases that nothing uses are closed. */
export function tooManyOpenFiles(cause: unknown): CairnError {
  return new CairnError("unavailable", "Too many files are open at once. Try again in a moment, or raise the limit with: ulimit -n", {
    cause,
    retryAfterMs: 1_000,
  });
}
