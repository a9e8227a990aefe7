import type { ErrorCode } from "../model/errors.ts";

/** How the process ends for each kind of failure, so that scripts can tell them apart. 0 is success. */
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
  /** As a shell says it of a process that Ctrl-C ended. */
  cancelled: 130,
};

/** It worked, and what it found asks for attention: `cairn doctor`, a `verify` or `check` that found damage, an import that had to leave something out. */
export const EXIT_ATTENTION = 11;
