import type { RunStore } from "../ports/run-store.ts";
import type { ContractCase } from "./contract.ts";
import { RUN_CATALOG_CASES } from "./run-catalog-cases.ts";
import { RUN_CHECKPOINT_CASES } from "./run-checkpoint-cases.ts";
import { RUN_EVENT_CASES } from "./run-event-cases.ts";
import { RUN_LEASE_CASES } from "./run-lease-cases.ts";
import { RUN_QUEUE_CASES } from "./run-queue-cases.ts";
import { RUN_WORKER_CASES } from "./run-worker-cases.ts";

const CASES = {
  ...RUN_CHECKPOINT_CASES,
  ...RUN_LEASE_CASES,
  ...RUN_CATALOG_CASES,
  ...RUN_QUEUE_CASES,
  ...RUN_WORKER_CASES,
  ...RUN_EVENT_CASES,
};

/** What `runStoreContract` needs to check a run store. */
export interface RunStoreContract {
  /** Creates an empty store that uses the given clock, so that leases expire without waiting. A server may use its own clock, see `clock`. */
  readonly open: (now: () => string) => Promise<RunStore> | RunStore;
  /** Whether the store uses the given clock. With its own clock (a server's), cases wait one or two seconds. */
  readonly clock: "given" | "own";
}

/** The contract of run stores, as cases for any test runner: `for (const { name, run } of runStoreContract(...)) it(name, run)`. */
export function runStoreContract(contract: RunStoreContract): readonly ContractCase[] {
  return Object.entries(CASES).map(([name, body]) => ({
    name,
    async run() {
      let time = Date.parse("2026-01-01T00:00:00.000Z");
      const given = contract.clock === "given";
      // Each reading advances the clock by a millisecond.
      const tick = () => {
        time += 1;
        return time;
      };
      const store = await contract.open(() => new Date(given ? tick() : Date.now()).toISOString());
      const pass = async (ms: number) => {
        if (given) time += ms;
        else await new Promise((resolve) => setTimeout(resolve, ms + 30));
      };
      try {
        await body(store, pass);
      } finally {
        await store.close();
      }
    },
  }));
}
