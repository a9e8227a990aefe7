import { getEnvironmentData, isMainThread, setEnvironmentData } from "node:worker_threads";

/** Calls in flight, counted by the thread that serves them in memory that all threads of the process share. */
const calls = sharedCounter();

/** Milliseconds after which a call no longer counts: it waits for something itself, perhaps for the work that yields to it. */
const CALL_MAX_MS = 150;
/** Milliseconds that a thread pauses at a time at most. It never pauses longer than it has worked, so calls cannot stop it. */
const PAUSE_MAX_MS = 150;

/** Calls in flight that this very thread serves. It must not pause for them. */
let callsHere = 0;

/** Marks a call as in flight and returns the function that ends it. */
export function beginCall(): () => void {
  Atomics.add(calls, 0, 1);
  callsHere++;
  let inFlight = true;
  const end = () => {
    if (!inFlight) return;
    inFlight = false;
    callsHere--;
    clearTimeout(timer);
    if (Atomics.sub(calls, 0, 1) === 1) Atomics.notify(calls, 0);
  };
  const timer = setTimeout(end, CALL_MAX_MS).unref();
  return end;
}

/** Milliseconds of work for which this thread has not paused yet. */
let creditMs = 0;
let resumedAt = performance.now();

/**
 * Yields the CPU to calls in flight: blocks a background thread until they have ended, or until it has paused as long as it worked.
 * Background work calls this every few milliseconds. On the main thread, and in a thread that serves a call itself, it returns at once.
 */
export function yieldToCalls(): void {
  if (isMainThread || callsHere > 0 || Atomics.load(calls, 0) === 0) return;
  const pausedAt = performance.now();
  creditMs = Math.min(PAUSE_MAX_MS, creditMs + pausedAt - resumedAt);
  const resumeBy = pausedAt + creditMs;
  for (let count = Atomics.load(calls, 0); count > 0 && performance.now() < resumeBy; count = Atomics.load(calls, 0))
    Atomics.wait(calls, 0, count, resumeBy - performance.now());
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
