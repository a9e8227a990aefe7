import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { afterEach, describe, expect, it } from "vitest";
import { builtFile } from "../../src/files/built-file.ts";

const YIELD = JSON.stringify(pathToFileURL(builtFile("scheduling/yield.js")).href);

/**
 * Serves a call in one thread and does background work in a thread that it starts. Both share the counter of calls in flight. The
 * background thread counts how often it blocks.
 */
const SERVING = `
  const { parentPort, Worker } = require("node:worker_threads");
  const events = [];
  const report = (event) => { events.push(event); parentPort.postMessage([...events]); };
  import(${YIELD}).then(({ beginCall }) => {
    let end;
    const worker = new Worker(\`
      const { parentPort } = require("node:worker_threads");
      let pauses = 0;
      const wait = Atomics.wait;
      Atomics.wait = (...args) => { pauses++; return wait(...args); };
      import(${YIELD}).then(({ beginCall, yieldToCalls }) => {
        const worked = performance.now() + 200;
        while (performance.now() < worked);
        parentPort.on("message", (message) => {
          if (message === "serve a call") beginCall();
          parentPort.postMessage("yields");
          yieldToCalls();
          parentPort.postMessage(pauses > 0 ? "continues after a pause" : "continues at once");
        });
        parentPort.postMessage("ready");
      });
    \`, { eval: true });
    worker.on("message", (message) => {
      if (message !== "ready") report(message);
      if (message === "ready") {
        if (process.argv[2] !== "no call") end = beginCall();
        worker.postMessage(process.argv[2] === "own call" ? "serve a call" : "work");
      }
      if (message === "yields" && process.argv[2] === "short call") {
        report("the call ends");
        end();
        end();
      }
      if (message.startsWith("continues")) worker.terminate();
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
      if (events.at(-1)?.startsWith("continues")) resolve(events);
    });
  });
}

describe("a background thread", () => {
  it("pauses until a call in flight has ended", async () => {
    expect(await eventsDuring("short call")).toEqual(["yields", "the call ends", "continues after a pause"]);
  });

  it("continues after a while, however long the call takes", async () => {
    expect(await eventsDuring("endless call")).toEqual(["yields", "continues after a pause"]);
  });

  it("does not pause while no call is in flight", async () => {
    expect(await eventsDuring("no call")).toEqual(["yields", "continues at once"]);
  });

  it("does not pause for calls while it serves one itself", async () => {
    expect(await eventsDuring("own call")).toEqual(["yields", "continues at once"]);
  });
});
