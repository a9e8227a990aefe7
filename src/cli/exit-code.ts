import type { ErrorCode } from "../model/errors.ts";

/** Exit codes by error, so that scripts can tell errors apart. 0 is success. */
export const EXIT_CODE: Record<ErrorCode, number> = {
  internal: 1,
  invalid_input: 2,
  not_found: 3,
  conflict: 4,
  forbidden: 5,
  unauthorized: 6,
  too_large: 7,
  rate_limited: 8,
  unavailable: 9,
  timeout: 10,
  /** The code by which a shell reports a process that Ctrl-C ended. */
  cancelled: 130,
};

/** Exit code of a call that succeeded and reports a problem: `cairn doctor`, a `verify` or `check` that found damage, an import that skipped records. */
export const EXIT_ATTENTION = 11;
