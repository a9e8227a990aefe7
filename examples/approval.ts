/** A run that waits for an approval, also across a restart. Run it with: npm run example -- approval */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { END, graph, openRunStore } from "../src/runs.ts"; // in your own project: from "cairn-memory/runs"

interface Refund {
  readonly customer: string;
  readonly amount: number;
  readonly approvedBy?: string;
  readonly paid?: boolean;
}

const refund = graph<Refund>({ name: "refund" })
  .node("assess", (state) => state)
  // Small amounts need no approval.
  .branch("assess", ({ amount }) => (amount > 100 ? "approve" : "pay"), ["approve", "pay"])
  .node("approve", (state, { interrupt }) => {
    const { by, ok } = interrupt<{ by: string; ok: boolean }>({ question: `Refund ${state.amount} to ${state.customer}?` });
    return { ...state, ...(ok ? { approvedBy: by } : { amount: 0 }) };
  })
  .edge("approve", "pay")
  .node("pay", (state, { idempotencyKey }) => {
    // A payment service that checks the key pays once, even if this step is interrupted after the payment and repeated.
    console.log(`paying ${state.amount} to ${state.customer} under the key ${idempotencyKey}`);
    return { ...state, paid: state.amount > 0 };
  })
  .edge("pay", END)
  .entry("assess")
  .compile();

const folder = mkdtempSync(join(tmpdir(), "cairn-example-"));
const place = { storage: "sqlite", path: join(folder, "runs.db") } as const;

const today = await openRunStore(place);
const asked = await refund.run({ customer: "Ada", amount: 250 }, { store: today, runId: "refund-17" });
assert.equal(asked.status, "paused");
console.log("waiting for:", asked.interrupts[0]?.question);
await today.close(); // the process may end here, for a minute or for a month

const tomorrow = await openRunStore(place);
const done = await refund.resume("refund-17", { store: tomorrow, input: { by: "Grace", ok: true } });
assert.deepEqual(done.state, { customer: "Ada", amount: 250, approvedBy: "Grace", paid: true });
console.log("done:", done.state);
await tomorrow.close();
rmSync(folder, { recursive: true });
