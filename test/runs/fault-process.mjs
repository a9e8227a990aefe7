// Saves checkpoints in one after the other and reports which were acknowledged. What fails is reported, and the next one is tried.
import { openRunStore } from "../../dist/runs.js";

const options = JSON.parse(process.argv[2]);
const acknowledged = [];
let errors = 0;
const attempt = async (work) => {
  try {
    return await work();
  } catch (error) {
    errors++;
    if (!error.message) throw error;
  }
};
const store = await openRunStore(options);
const lease = await attempt(() =>
  store.start({
    runId: "r",
    graph: "g",
    fingerprint: "f",
    owner: "me",
    leaseMs: 60_000,
    first: { nodeId: "first", state: Buffer.from("first") },
  }),
);
if (lease) acknowledged.push("first");
for (let i = 0; i < 5; i++) {
  const text = `${i}:${"x".repeat(i * 700)}`;
  const saved = await attempt(() =>
    store.save({ runId: lease ? "r" : "free", nodeId: `n${i}`, state: Buffer.from(text) }, lease ? { fence: lease.fence } : {}),
  );
  if (saved) acknowledged.push(`n${i}`);
  if (i === 2) await attempt(() => store.delete("r", "n0"));
}
await attempt(() => store.close());
process.stdout.write(JSON.stringify({ acknowledged, errors, runId: lease ? "r" : "free" }));
