import { getEnvironmentData, isMainThread, setEnvironmentData } from "node:worker_threads";

/**
 * Calls that somebody waits for go before work in the background. The main thread counts the calls that it is answering where its
 * threads can see it, and those rest as long as there is one.
 */
const answering = sharedCount();

/** A call that takes longer than this waits for something itself, perhaps for the very work that gives way to it. */
const CALL_MS = 150;
/** A thread rests no longer than it has worked, so that no number of calls brings it to a stop; and so long at a time at most. */
const REST_MAX_MS = 150;

/** Of the calls, those that this very thread is answering. It must not stand still for them. */
let answeringHere = 0;

/** Says that a call is being answered. Gives what says that it no longer is. */
export function answerCall(): () => void {
  Atomics.add(answering, 0, 1);
  answeringHere++;
  let counted = true;
  const end = () => {
    if (!counted) return;
    counted = false;
    answeringHere--;
    clearTimeout(timer);
    if (Atomics.sub(answering, 0, 1) === 1) Atomics.notify(answering, 0);
  };
  const timer = setTimeout(end, CALL_MS).unref();
  return end;
}

let credit = 0;
let restedAt = performance.now();

/** Lets the calls that are being answered go first. For threads in the background, every few milliseconds: the thread stands still. */
export function giveWay(): void {
  if (isMainThread || answeringHere > 0 || Atomics.load(answering, 0) === 0) return;
  const from = performance.now();
  credit = Math.min(REST_MAX_MS, credit + from - restedAt);
  restedAt = from;
  for (let left = credit; left > 0; left = from + credit - performance.now()) {
    const calls = Atomics.load(answering, 0);
    if (calls === 0) break;
    Atomics.wait(answering, 0, calls, left);
  }
  restedAt = performance.now();
  credit = Math.max(0, credit - (restedAt - from));
}

/** One for the whole process: threads get it from the one that starts them. */
function sharedCount(): Int32Array {
  const name = "cairn: calls being answered";
  const known = getEnvironmentData(name) as SharedArrayBuffer | undefined;
  const buffer = known ?? new SharedArrayBuffer(4);
  if (!known) setEnvironmentData(name, buffer);
  return new Int32Array(buffer);
}
