import { CairnError, type ErrorCode } from "../model/errors.ts";
import { redactMessage } from "../text/redact-message.ts";

/** The closed list of failure kinds of a run. */
export type RunErrorKind =
  | "node"
  | "timeout"
  | "cancelled"
  | "router"
  | "max_iterations"
  | "checkpoint"
  | "fork"
  | "graph_changed"
  | "lease"
  | "state";

export interface RunErrorOptions {
  readonly code?: ErrorCode;
  readonly runId: string;
  readonly node?: string | undefined;
  readonly branch?: string | undefined;
  /** The input state of the failed step. */
  readonly state?: unknown;
  readonly cause?: unknown;
  readonly details?: Readonly<Record<string, unknown>>;
}

const CODE: Record<RunErrorKind, ErrorCode> = {
  node: "internal",
  timeout: "timeout",
  cancelled: "cancelled",
  router: "internal",
  max_iterations: "internal",
  checkpoint: "unavailable",
  fork: "internal",
  graph_changed: "conflict",
  lease: "conflict",
  state: "invalid_input",
};

/** The error of a failed run, with kind, node and state. The only subclass of CairnError, because a state does not fit into `details`. */
export class RunError<S = unknown> extends CairnError {
  readonly kind: RunErrorKind;
  readonly runId: string;
  readonly node: string | undefined;
  readonly branch: string;
  readonly state: S | undefined;

  constructor(kind: RunErrorKind, message: string, { code, runId, node, branch = "", state, cause, details }: RunErrorOptions) {
    super(code ?? (cause instanceof CairnError ? cause.code : CODE[kind]), message, {
      cause,
      details: { ...details, kind, runId, ...(node === undefined ? {} : { node }) },
      ...(cause instanceof CairnError && cause.retryAfterMs !== undefined ? { retryAfterMs: cause.retryAfterMs } : {}),
    });
    this.kind = kind;
    this.runId = runId;
    this.node = node;
    this.branch = branch;
    this.state = state as S | undefined;
  }
}

/** Returns whether the store refused because another process has the lease. */
export function isHeld(error: unknown): error is CairnError {
  return error instanceof CairnError && error.details?.kind === "held";
}

/** Characters of a stored reason. */
const REASON_CHARS = 2_000;

/** Returns the reason of a failure without secrets, which error messages may quote. */
export function storedReason(message: string): string {
  return redactMessage(message).slice(0, REASON_CHARS);
}

/** Returns the message of any thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : typeof error === "string" ? error : "a value that is not an error was thrown";
}

/** The engine's own time limits, as opposed to those of a service that a step called. */
const timedOut = new WeakSet<CairnError>();

/** Returns the error of a time limit of the engine. */
export function outOfTime(message: string): CairnError {
  const error = new CairnError("timeout", `${message} Give it more time, or less to do.`);
  timedOut.add(error);
  return error;
}

/** Returns whether a time limit of the engine ended the step. */
export function isTimeLimit(error: unknown): boolean {
  return error instanceof CairnError && timedOut.has(error);
}
