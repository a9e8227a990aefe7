import { getEnvironmentData, isMainThread, setEnvironmentData } from "node:worker_threads";

/**
 * Calls that somebody waits for go before work in the background. The main thread counts the calls that it is answering where its
 * threads can see it, and those rest as long as there is one.
 */
const counts = sharedCounts();
const CALLS = 0;
/** Those who want to write to a database. */
const WRITERS = 1;

/** A call that takes longer than this waits for something itself, perhaps for the very work that gives way to it. */
const CALL_MS = 150;
/** A thread rests no longer than it has worked, so that no number of calls brings it to a stop; and so long at a time at most. */
const REST_MAX_MS = 150;
/** Whoever rests with a lock looks this often whether somebody wants it. */
const LOOK_MS = 2;

/** Of the calls, those that this very thread is answering. It must not stand still for them. */
let answeringHere = 0;

/** Says that a call is being answered. Gives what says that it no longer is. */
export function answerCall(): () => void {
  Atomics.add(counts, CALLS, 1);
  answeringHere++;
  let counted = true;
  const end = () => {
    if (!counted) return;
    counted = false;
    answeringHere--;
    clearTimeout(timer);
    if (Atomics.sub(counts, CALLS, 1) === 1) Atomics.notify(counts, CALLS);
  };
  const timer = setTimeout(end, CALL_MS).unref();
  return end;
}

/** Says that somebody wants to write, who must not wait for a thread that rests while it holds the lock. Gives what says that it is done. */
export function wantToWrite(): () => void {
  // A thread in the background is not somebody who waits, and could be ended before it is done.
  if (!isMainThread && answeringHere === 0) return () => {};
  Atomics.add(counts, WRITERS, 1);
  return () => void Atomics.sub(counts, WRITERS, 1);
}

/** Whether anybody in this process wants to write. */
export function isWriteWanted(): boolean {
  return Atomics.load(counts, WRITERS) > 0;
}

let credit = 0;
let restedAt = performance.now();

/**
 * Lets the calls that are being answered go first. For threads in the background, every few milliseconds: the thread stands still.
 * One that holds a lock does so only as long as nobody wants to write.
 */
export function giveWay({ locked = false } = {}): void {
  if (isMainThread || answeringHere > 0 || Atomics.load(counts, CALLS) === 0) return;
  const from = performance.now();
  credit = Math.min(REST_MAX_MS, credit + from - restedAt);
  restedAt = from;
  for (let left = credit; left > 0; left = from + credit - performance.now()) {
    const calls = Atomics.load(counts, CALLS);
    if (calls === 0 || (locked && isWriteWanted())) break;
    Atomics.wait(counts, CALLS, calls, locked ? Math.min(left, LOOK_MS) : left);
  }
  restedAt = performance.now();
  credit = Math.max(0, credit - (restedAt - from));
}

/** One for the whole process: threads get it from the one that starts them. */
function sharedCounts(): Int32Array {
  const name = "cairn: calls being answered";
  const known = getEnvironmentData(name) as SharedArrayBuffer | undefined;
  const buffer = known ?? new SharedArrayBuffer(8);
  if (!known) setEnvironmentData(name, buffer);
  return new Int32Array(buffer);
}
