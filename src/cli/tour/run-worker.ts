// Runs an order as a durable run. The first process is killed in the middle of its third step; the second one resumes it.
import { setTimeout as sleep } from "node:timers/promises";
import { RunError } from "../../runs/run-error.ts";
import { END, graph, openRunStore } from "../../runs.ts";

const STEPS = ["reserve stock", "charge card", "print label", "book courier", "send e-mail"];
const RUN_ID = "order-4711";
/** Short, so that the second process need not wait for the lease of the killed one. */
const LEASE_MS = 1_000;

const [path, mode] = process.argv.slice(2) as [string, "run" | "resume"];
const store = await openRunStore({ storage: "sqlite", path });
const order = STEPS.reduce(
  (built, step, index) =>
    built
      .node(step, async (done) => {
        process.stdout.write(`${step}\n`);
        if (mode === "run" && index === 2) process.kill(process.pid, "SIGKILL");
        await sleep(20);
        return [...done, step];
      })
      .edge(step, STEPS[index + 1] ?? END),
  graph<readonly string[]>({ name: "order" }),
)
  .entry(STEPS[0]!)
  .compile();

if (mode === "run") await order.run([], { store, runId: RUN_ID, leaseMs: LEASE_MS });
else await resume();
await store.close();

async function resume(): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      await order.resume(RUN_ID, { store, leaseMs: LEASE_MS });
      return;
    } catch (error) {
      if (!(error instanceof RunError && error.kind === "lease") || attempt === 100) throw error;
      await sleep(100);
    }
  }
}
