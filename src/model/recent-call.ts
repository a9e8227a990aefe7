/** A call that this process answered: names and numbers only, never its input or its answer. */
export interface RecentCall {
  readonly at: string;
  readonly operation: string;
  readonly edge: "http" | "mcp";
  readonly durationMs: number;
  /** The code of the error, if it failed. */
  readonly error?: string | undefined;
  /** The id of the API key; absent for the local user. */
  readonly keyId?: string | undefined;
}

/** Calls that a process remembers. */
export const RECENT_CALLS_MAX = 500;
