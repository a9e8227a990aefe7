import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { afterEach, describe, expect, it } from "vitest";
import { builtFile } from "../../src/files/built-file.ts";

// Calls are counted where all threads that come of one see it, so the one that answers them is a thread here too.
const GIVE_WAY = JSON.stringify(pathToFileURL(builtFile("model/give-way.js")).href);
const ANSWERING = `
  const { parentPort, Worker } = require("node:worker_threads");
  const told = [];
  const tell = (what) => { told.push(what); parentPort.postMessage([...told]); };
  import(${GIVE_WAY}).then(({ answerCall, wantToWrite }) => {
    let end;
    const worker = new Worker(\`
      const { getEnvironmentData, parentPort } = require("node:worker_threads");
      const calls = new Int32Array(getEnvironmentData("cairn: calls being answered"));
      import(${GIVE_WAY}).then(({ giveWay }) => {
        const worked = performance.now() + 200;
        while (performance.now() < worked);
        parentPort.on("message", () => {
          parentPort.postMessage("rests");
          const locked = \${process.argv[2] === "somebody wants to write"};
          giveWay({ locked });
          if (locked) parentPort.postMessage(calls[0] > 0 ? "does not wait for the call" : "waits for the call");
          parentPort.postMessage("goes on");
        });
        parentPort.postMessage("ready");
      });
    \`, { eval: true });
    worker.on("message", (message) => {
      if (message !== "ready") tell(message);
      if (message === "ready") {
        end = answerCall();
        worker.postMessage("work");
      }
      if (message === "rests" && process.argv[2] === "ends") {
        tell("the call ends");
        end();
        end();
      }
      if (message === "rests" && process.argv[2] === "somebody wants to write") {
        tell("somebody wants to write");
        wantToWrite();
      }
      if (message === "goes on") worker.terminate();
    });
  });
`;

let answering: Worker | undefined;
afterEach(() => answering?.terminate());

/** What happens, in this order, to a thread in the background that has worked for a while when a call comes. */
async function whatHappens(call: "ends" | "goes on for ever" | "somebody wants to write"): Promise<readonly string[]> {
  const thread = new Worker(ANSWERING, { eval: true, argv: [call] });
  answering = thread;
  return new Promise((resolve, reject) => {
    thread.on("error", reject);
    thread.on("message", (told: readonly string[]) => {
      if (told.at(-1) === "goes on") resolve(told);
    });
  });
}

describe("work in the background", () => {
  it("rests until a call is answered", async () => {
    expect(await whatHappens("ends")).toEqual(["rests", "the call ends", "goes on"]);
  });

  it("goes on after a while, however long the call takes", async () => {
    expect(await whatHappens("goes on for ever")).toEqual(["rests", "goes on"]);
  });

  // The call is over by itself after a while, which a busy machine may need for a message.
  it("that holds a lock goes on as soon as somebody wants to write", { retry: 3 }, async () => {
    const inOrder = ["rests", "somebody wants to write", "does not wait for the call", "goes on"];
    expect(await whatHappens("somebody wants to write")).toEqual(inOrder);
  });

  it("does not stand still for the calls of its own thread", async () => {
    const { answerCall, giveWay } = await import("../../src/scheduling/yield.ts");
    const end = answerCall();
    try {
      for (let i = 0; i < 1_000; i++) giveWay();
    } finally {
      end();
    }
  });
});
