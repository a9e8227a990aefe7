// Preloaded into the attacked server: appends a line of JSON for each time its event loop stood still.
import { appendFileSync, readFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { isMainThread } from "node:worker_threads";

const TICK_MS = 5;
/** Shorter blocks are not reported one by one; the histogram has them. */
const REPORTED_MS = 50;

const file = process.env.CAIRN_TEST_BLOCKS_FILE;
if (isMainThread && file) {
  const histogram = monitorEventLoopDelay({ resolution: TICK_MS });
  histogram.enable();
  let last = { at: performance.now(), waited: waitedMs() };
  setInterval(() => {
    const now = { at: performance.now(), waited: waitedMs() };
    // A busy machine makes every process wait for a processor; only the rest of the delay is the server's own.
    const blockedMs = now.at - last.at - TICK_MS - (now.waited - last.waited);
    last = now;
    if (blockedMs > REPORTED_MS) appendFileSync(file, `${JSON.stringify({ endedAt: Date.now(), blockedMs: Math.round(blockedMs) })}\n`);
  }, TICK_MS).unref();
  process.on("exit", () => {
    const ms = (nanoseconds) => Math.round(nanoseconds / 1e4) / 100;
    const delay = { p50: ms(histogram.percentile(50)), p99: ms(histogram.percentile(99)), max: ms(histogram.max) };
    appendFileSync(file, `${JSON.stringify({ endedAt: Date.now(), blockedMs: 0, delay })}\n`);
  });
}

/** How long the main thread has been ready to run without a processor. Linux only; elsewhere 0. */
function waitedMs() {
  try {
    return Number(readFileSync(`/proc/${process.pid}/task/${process.pid}/schedstat`, "utf8").split(" ")[1]) / 1e6;
  } catch {
    return 0;
  }
}
