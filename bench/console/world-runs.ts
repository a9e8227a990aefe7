import type { Cairn } from "../../src/index.ts";
import { END, graph } from "../../src/runs.ts";

/** The project that the pages show. */
export const SHOP = "/home/me/work/shop";

interface Refund {
  readonly customer: string;
  readonly amount: number;
  readonly checks: number;
  readonly approvedBy?: string;
  readonly paid?: boolean;
}

/** A graph with a branch, a loop, a pause and a step that can fail. */
export const refund = graph<Refund>({ name: "refund" })
  .node("assess", (state) => ({ ...state, checks: state.checks + 1 }))
  .branch("assess", ({ amount, checks }) => (checks < 3 ? "assess" : amount > 100 ? "approve" : "pay"), ["assess", "approve", "pay"])
  .node("approve", (state, { interrupt }) => {
    const answer = interrupt<{ by: string; ok: boolean }>({ question: `Refund ${state.amount} to ${state.customer}?` });
    return { ...state, ...(answer.ok ? { approvedBy: answer.by } : { amount: 0 }) };
  })
  .edge("approve", "pay")
  .node(
    "pay",
    (state) => {
      if (state.customer === "Mallory") throw new Error("The bank refused the account");
      return { ...state, paid: true };
    },
    { retry: { attempts: 2, on: ["error"], backoffMs: 10 } },
  )
  .edge("pay", END)
  .entry("assess")
  .compile();

/** Starts runs that are completed, paused and failed. */
export async function fillRuns({ runs: { store } }: Cairn): Promise<void> {
  const options = { store, project: SHOP };
  await refund.run({ customer: "customer 15", amount: 40, checks: 0 }, { ...options, runId: "refund-15" });
  await refund.run({ customer: "Mallory", amount: 20, checks: 0 }, { ...options, runId: "refund-16" }).catch(() => undefined);
  await refund.run({ customer: "customer 17", amount: 250, checks: 0 }, { ...options, runId: "refund-17" });
}
