/** Calls of operations: their time limits, and the background work that yields the CPU to them. */

import { AsyncLocalStorage } from "node:async_hooks";
import { getEnvironmentData, isMainThread, setEnvironmentData } from "node:worker_threads";
import { LIMITS } from "../model/limits.ts";

interface CallTime {
  readonly startedAt: number;
  readonly endsAt: number;
  /** Milliseconds that stay free at the end of the call, so that it can still report why it failed. */
  readonly reserveMs: number;
  open: boolean;
}

const callTimes = new AsyncLocalStorage<CallTime>();
const RESERVE_SHARE = 0.3;
const RESERVE_MAX_MS = 2_000;

/**
 * Runs a call under its time limit. Waits inside it (locks, connections, migrations) ask `waitLimitMs` and end before the limit, so
 * that the caller learns what the call waited for instead of a bare timeout.
 */
export async function withTimeLimit<T>(timeoutMs: number, work: () => Promise<T>): Promise<T> {
  const reserveMs = Math.min(RESERVE_MAX_MS, timeoutMs * RESERVE_SHARE);
  const startedAt = performance.now();
  const call: CallTime = { startedAt, endsAt: startedAt + timeoutMs, reserveMs, open: true };
  try {
    return await callTimes.run(call, work);
  } finally {
    call.open = false; // background work that the call started is not bound by its limit
  }
}

/**
 * Returns how many milliseconds a wait may take: `maxMs`, or less where the current call must answer sooner. Of nested waits the outer
 * ones use a share of the reserve, so that the innermost, which knows most about its reason, ends first.
 */
export function waitLimitMs(maxMs: number = LIMITS.lockWaitMs, reserveShare = 0): number {
  const call = callTimes.getStore();
  if (!call?.open) return maxMs;
  return Math.max(0, Math.min(maxMs, call.endsAt - call.reserveMs * (1 - reserveShare) - performance.now()));
}

/** Returns when the current call began, on the clock of `performance.now()`, or the current time outside of a call. */
export function callStartedAt(): number {
  const call = callTimes.getStore();
  return call?.open ? call.startedAt : performance.now();
}

/** Runs background work that a call has started. It is not bound by that call's time limit. */
export function withoutTimeLimit<T>(work: () => T): T {
  return callTimes.run(undefined as unknown as CallTime, work);
}

/** Calls in flight, counted by the thread that serves them in memory that all threads of the process share. */
const inFlight = sharedCounter();

/** Milliseconds after which a call no longer counts: it waits for something itself, perhaps for the work that yields to it. */
const CALL_MAX_MS = 150;
/** Milliseconds that a thread pauses at a time at most. It never pauses longer than it has worked, so calls cannot stop it. */
const PAUSE_MAX_MS = 150;

/** Calls in flight that this very thread serves. It must not pause for them. */
let callsHere = 0;

/** Marks a call as in flight and returns the function that ends it. */
export function beginCall(): () => void {
  Atomics.add(inFlight, 0, 1);
  callsHere++;
  let open = true;
  const end = () => {
    if (!open) return;
    open = false;
    callsHere--;
    clearTimeout(timer);
    if (Atomics.sub(inFlight, 0, 1) === 1) Atomics.notify(inFlight, 0);
  };
  const timer = setTimeout(end, CALL_MAX_MS).unref();
  return end;
}

/** Returns whether a call is in flight in this process: background work then does little at a time. */
export function hasCallsInFlight(): boolean {
  return Atomics.load(inFlight, 0) > 0;
}

/** Milliseconds of work for which this thread has not paused yet. */
let creditMs = 0;
let resumedAt = performance.now();

/**
 * Yields the CPU to calls in flight: blocks a background thread until they have ended, or until it has paused as long as it worked.
 * Background work calls this every few milliseconds. On the main thread, and in a thread that serves a call itself, it returns at once.
 */
export function yieldToCalls(): void {
  if (isMainThread || callsHere > 0 || Atomics.load(inFlight, 0) === 0) return;
  const pausedAt = performance.now();
  creditMs = Math.min(PAUSE_MAX_MS, creditMs + pausedAt - resumedAt);
  const resumeBy = pausedAt + creditMs;
  for (let count = Atomics.load(inFlight, 0); count > 0 && performance.now() < resumeBy; count = Atomics.load(inFlight, 0))
    Atomics.wait(inFlight, 0, count, resumeBy - performance.now());
  resumedAt = performance.now();
  creditMs = Math.max(0, creditMs - (resumedAt - pausedAt));
}

/** Returns the one counter of the process: a thread inherits it from the thread that starts it. */
function sharedCounter(): Int32Array {
  const name = "cairn: calls in flight";
  const known = getEnvironmentData(name) as SharedArrayBuffer | undefined;
  const buffer = known ?? new SharedArrayBuffer(4);
  if (!known) setEnvironmentData(name, buffer);
  return new Int32Array(buffer);
}
