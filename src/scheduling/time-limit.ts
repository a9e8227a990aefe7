import { AsyncLocalStorage } from "node:async_hooks";
import { LIMITS } from "../model/limits.ts";

interface CallTime {
  readonly endsAt: number;
  /** Milliseconds that stay free at the end of the call, so that it can still report why it failed. */
  readonly reserveMs: number;
  open: boolean;
}

const calls = new AsyncLocalStorage<CallTime>();
const RESERVE_SHARE = 0.3;
const RESERVE_MAX_MS = 2_000;

/**
 * Runs a call under its time limit. Waits inside it (locks, connections, migrations) ask `waitLimitMs` and end before the limit, so
 * that the caller learns what the call waited for instead of a bare timeout.
 */
export async function withTimeLimit<T>(timeoutMs: number, work: () => Promise<T>): Promise<T> {
  const reserveMs = Math.min(RESERVE_MAX_MS, timeoutMs * RESERVE_SHARE);
  const call: CallTime = { endsAt: performance.now() + timeoutMs, reserveMs, open: true };
  try {
    return await calls.run(call, work);
  } finally {
    call.open = false; // background work that the call started is not bound by its limit
  }
}

/**
 * Returns how many milliseconds a wait may take: `maxMs`, or less where the current call must answer sooner. Of nested waits the outer
 * ones use a share of the reserve, so that the innermost, which knows most about its reason, ends first.
 */
export function waitLimitMs(maxMs: number = LIMITS.lockWaitMs, reserveShare = 0): number {
  const call = calls.getStore();
  if (!call?.open) return maxMs;
  return Math.max(0, Math.min(maxMs, call.endsAt - call.reserveMs * (1 - reserveShare) - performance.now()));
}

/** Runs background work that a call has started: it may take its time even while that call is still open. */
export function withoutTimeLimit<T>(work: () => T): T {
  return calls.run(undefined as unknown as CallTime, work);
}
