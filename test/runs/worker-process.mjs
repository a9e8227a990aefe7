// A process that works on runs and can die at a given write. Runs from dist/, like every child process of the tests.
import { once } from "node:events";
import { appendFileSync } from "node:fs";
import * as nodeFiles from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { END, graph, openRunStore } from "../../dist/runs.js";
import { fileRunStore } from "../../dist/stores/file/runs.js";

const order = JSON.parse(process.argv[2]);
const { effects, leaseMs = 1_000, paceMs = 0, runId } = order;

/** What a step does to the world outside, written down where no rollback reaches it. */
const step =
  (name) =>
  async (state, { idempotencyKey, runId }) => {
    appendFileSync(effects, `${JSON.stringify({ pid: process.pid, runId, key: idempotencyKey })}\n`);
    if (paceMs > 0) await sleep(Math.random() * paceMs);
    return { ...state, trail: [...state.trail, name] };
  };

const work = graph({ name: "work" })
  .node("prepare", step("prepare"))
  .edge("prepare", "fan")
  .fork("fan", {
    branches: { left: "l1", right: "r1" },
    join: "join",
    merge: (before, { left, right }) => ({ ...before, trail: [...left.trail, ...right.trail.slice(before.trail.length)] }),
  })
  .node("l1", step("l1"))
  .edge("l1", "l2")
  .node("l2", step("l2"))
  .edge("l2", "join")
  .node("r1", step("r1"))
  .edge("r1", "join")
  .node("join", step("join"))
  .edge("join", "again")
  .node("again", async (state, context) => ({ ...(await step("again")(state, context)), rounds: state.rounds + 1 }))
  .branch("again", ({ rounds }) => (rounds < 3 ? "again" : END), ["again", END])
  .entry("prepare")
  .compile();

const approval = graph({ name: "approval" })
  .node("ask", (state, { interrupt }) => ({ ...state, answer: interrupt("go?") }))
  .edge("ask", "act")
  .node("act", step("act"))
  .edge("act", END)
  .entry("ask")
  .compile();

let left = order.dieAt ?? Number.POSITIVE_INFINITY;
function point() {
  if (--left === 0) process.kill(process.pid, "SIGKILL");
}

/** Dies before or after the n-th call that writes. */
function mortal(store) {
  const around =
    (verb) =>
    async (...args) => {
      point();
      const result = await store[verb](...args);
      point();
      return result;
    };
  return { ...store, start: around("start"), acquire: around("acquire"), save: around("save"), release: around("release") };
}

function mortalCall(call) {
  return (...args) => {
    point();
    return call(...args);
  };
}

/** Dies before the n-th write, sync, link, rename or unlink; a write is cut in half first. */
const mortalFiles = {
  ...nodeFiles,
  async open(path, flags, mode) {
    const handle = await nodeFiles.open(path, flags, mode);
    return {
      stat: () => handle.stat(),
      read: (...args) => handle.read(...args),
      readFile: () => handle.readFile(),
      close: () => handle.close(),
      async writeFile(data) {
        if (left === 1) await handle.write(Buffer.from(data).subarray(0, Math.floor(data.length / 2)));
        point();
        await handle.writeFile(data);
      },
      async sync() {
        point();
        await handle.sync();
      },
    };
  },
  link: mortalCall(nodeFiles.link),
  rename: mortalCall(nodeFiles.rename),
  unlink: mortalCall(nodeFiles.unlink),
};

/** On a busy machine a process may be held up for longer than its lease. Then it is as good as dead: another process recovers the run. */
function asIfKilled(error) {
  if (error.kind !== "lease") throw error;
  process.kill(process.pid, "SIGKILL");
}

const store =
  order.store.storage === "file" ? fileRunStore({ ...order.store, files: mortalFiles }) : mortal(await openRunStore(order.store));
const input = { trail: [], rounds: 0 };
const say = (word) => process.stdout.write(`${word}\n`);

switch (order.mode) {
  case "run":
    await work.run(input, { store, runId, leaseMs }).catch(asIfKilled);
    break;
  case "run-many":
    for (let i = 0; ; i++) {
      if (i === 1) say("begun");
      await work.run(input, { store, runId: `${runId}-${i}`, leaseMs }).catch((error) => {
        if (error.kind !== "lease") throw error; // held up for too long: another process recovers it
      });
    }
  case "recover":
    for (;;) {
      const failures = (await work.recover({ store, leaseMs })).filter((recovery) => recovery.error);
      if (failures.length > 0) throw failures[0].error;
      if ((await store.listRuns({ status: "running", limit: 1 })).length === 0) break;
      await sleep(50);
    }
    break;
  case "pause":
    for (let i = 0; i < order.count; i++) await approval.run(input, { store, runId: `${runId}-${i}` });
    break;
  case "race":
    // Both racers receive the moment; the holder of the run acts.
    say("ready");
    process.stdin.setEncoding("utf8");
    for await (const line of process.stdin) {
      const { id, at } = JSON.parse(line);
      while (Date.now() < at);
      const outcome = await approval.resume(id, { store, input: "yes", leaseMs }).then(
        ({ status }) => status,
        (error) => error.cause?.details?.kind ?? error.details?.kind ?? error.code,
      );
      say(JSON.stringify({ id, outcome }));
    }
    break;
  case "slow": {
    const slow = graph({ name: "work" })
      .node("prepare", async (state, context) => {
        const done = await step("prepare")(state, context);
        say("working");
        await once(process.stdin, "data"); // until the test has done its part
        process.stdin.destroy();
        return done;
      })
      .edge("prepare", END)
      .entry("prepare")
      .compile();
    await slow.run(input, { store, runId, leaseMs }).then(
      () => say("completed"),
      (error) => say(error.kind),
    );
    break;
  }
}
await store.close();
