// A worker process that a test kills at any moment. Runs from dist/, like every child process of the tests.
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { END, graph, openRunStore, worker } from "../../dist/runs.js";

const { store: options, effects, paceMs } = JSON.parse(process.argv[2]);

/** What a step does to the world outside, written down where no rollback reaches it. */
const step =
  (name) =>
  async (state, { idempotencyKey, runId }) => {
    appendFileSync(effects, `${JSON.stringify({ pid: process.pid, runId, name, key: idempotencyKey })}\n`);
    await sleep(Math.random() * paceMs);
    return { ...state, trail: [...state.trail, name] };
  };

/** Asks in runs that want an answer, before its own effect, and records who answered. */
const ask = async (state, context) => {
  const answer = state.asks ? context.interrupt({ question: `Continue ${context.runId}?` }) : undefined;
  return step("q")({ ...state, answer }, context);
};

export const pool = graph({ name: "pool" })
  .node("a", step("a"))
  .edge("a", "fan")
  .fork("fan", {
    branches: { left: "l", right: "r" },
    join: "z",
    merge: (before, { left, right }) => ({ ...before, trail: [...left.trail, ...right.trail.slice(before.trail.length)] }),
  })
  .node("l", step("l"))
  .edge("l", "z")
  .node("r", step("r"))
  .edge("r", "z")
  .node("z", step("z"))
  .edge("z", "q")
  .node("q", ask)
  .edge("q", END)
  .entry("a")
  .compile();

const store = await openRunStore(options);
const working = worker({
  store,
  graphs: [pool],
  concurrency: 4,
  pollMs: 50,
  onEvent: ({ type, error }) => error && console.error(type, error.message),
});
process.on("SIGTERM", async () => {
  await working.close();
  await store.close();
});
process.stdout.write("ready\n");
