import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { afterEach, describe, expect, it } from "vitest";
import { builtFile } from "../../src/files/built-file.ts";

const YIELD = JSON.stringify(pathToFileURL(builtFile("scheduling/calls.js")).href);

/**
 * Serves calls in one thread and does background work in a thread that it starts. Both share the counter of calls in flight. The
 * background thread has a clock that only its own waits advance, and reports when it blocks.
 */
const SERVING = `
  const { parentPort, Worker } = require("node:worker_threads");
  const events = [];
  const report = (event) => { events.push(event); parentPort.postMessage([...events]); };
  import(${YIELD}).then(({ beginCall }) => {
    let end = () => {};
    let renewing;
    const worker = new Worker(\`
      const { parentPort } = require("node:worker_threads");
      let clock = 0;
      performance.now = () => clock;
      const wait = Atomics.wait;
      Atomics.wait = (array, index, value, timeoutMs) => {
        parentPort.postMessage("pauses");
        if (\${process.argv[2] === "short call"}) return wait(array, index, value);
        clock += timeoutMs;
        return "timed-out";
      };
      import(${YIELD}).then(({ beginCall, yieldToCalls }) => {
        clock = 200; // milliseconds of work
        parentPort.on("message", (message) => {
          if (message === "serve a call") beginCall();
          yieldToCalls();
          parentPort.postMessage("continues");
        });
        parentPort.postMessage("ready");
      });
    \`, { eval: true });
    worker.on("message", (message) => {
      if (message !== "ready") report(message);
      if (message === "ready") {
        // A call stops to count after a while, so the next one begins before.
        const renew = () => { const next = beginCall(); end(); end = next; };
        if (process.argv[2] !== "no call") { renew(); renewing = setInterval(renew, 20); }
        worker.postMessage(process.argv[2] === "own call" ? "serve a call" : "work");
      }
      if (message === "pauses" && process.argv[2] === "short call") {
        report("the call ends");
        clearInterval(renewing);
        end();
        end();
      }
      if (message === "continues") {
        clearInterval(renewing);
        worker.terminate();
      }
    });
  });
`;

let serving: Worker | undefined;
afterEach(() => serving?.terminate());

/** Returns what happens, in order, to a background thread that has worked for a while. */
async function eventsDuring(call: "no call" | "short call" | "endless call" | "own call"): Promise<readonly string[]> {
  const thread = new Worker(SERVING, { eval: true, argv: [call] });
  serving = thread;
  return new Promise((resolve, reject) => {
    thread.on("error", reject);
    thread.on("message", (events: readonly string[]) => {
      if (events.at(-1) === "continues") resolve(events);
    });
  });
}

describe("a background thread", () => {
  it("pauses until a call in flight has ended", async () => {
    expect(await eventsDuring("short call")).toEqual(["pauses", "the call ends", "continues"]);
  });

  it("continues after a while, however long the call takes", async () => {
    expect(await eventsDuring("endless call")).toEqual(["pauses", "continues"]);
  });

  it("does not pause while no call is in flight", async () => {
    expect(await eventsDuring("no call")).toEqual(["continues"]);
  });

  it("does not pause for calls while it serves one itself", async () => {
    expect(await eventsDuring("own call")).toEqual(["continues"]);
  });
});
