import { CairnError } from "../model/errors.ts";
import type { Run } from "../model/run.ts";
import type { RunStore } from "../ports/run-store.ts";
import { hasEnded } from "../scheduling/owner.ts";
import type { CompiledGraph } from "./compiled.ts";
import type { ResumeOptions, RunResult } from "./options.ts";
import { isHeld } from "./run-error.ts";

/** Options of taking over runs whose process ended. */
export interface RecoverOptions<S> extends Omit<ResumeOptions<S>, "input" | "inputs" | "state"> {
  /** The maximum number of runs to take over. */
  readonly limit?: number | undefined;
  /** The number of runs that are executed concurrently. */
  readonly concurrency?: number | undefined;
}

/** The result of taking over one run. */
export type Recovery<S> =
  | { readonly runId: string; readonly result: RunResult<S> }
  | { readonly runId: string; readonly error: CairnError };

/** Resumes every run whose lease has expired or whose process on this machine has ended, except runs that another process acquires first. */
export async function recoverRuns<S>(
  graph: Pick<CompiledGraph<S>, "name" | "resume">,
  { limit = 1_000, concurrency = 10, ...options }: RecoverOptions<S>,
): Promise<readonly Recovery<S>[]> {
  const abandoned = await listAbandoned(options.store, graph.name, limit);
  const recoveries: Recovery<S>[] = [];
  const waiting = abandoned.values();
  const worker = async () => {
    for (const { runId } of waiting) {
      options.signal?.throwIfAborted();
      try {
        recoveries.push({ runId, result: await graph.resume(runId, options) });
      } catch (error) {
        if (!(error instanceof CairnError)) throw error;
        if (isHeld(error.cause) || error.code === "not_found") continue;
        recoveries.push({ runId, error });
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, abandoned.length) }, worker));
  return recoveries;
}

const PAGE = 100;

/** Returns runs without a process: those whose lease has expired first, then those whose owner has ended. */
async function listAbandoned(store: RunStore, graph: string, limit: number): Promise<readonly Run[]> {
  const found = new Map((await store.listRuns({ graph, abandoned: true, limit })).map((run) => [run.runId, run]));
  let after: Run | undefined;
  while (found.size < limit) {
    const page = await store.listRuns({ graph, status: "running", limit: PAGE, ...(after && { after }) });
    for (const run of page) if (found.size < limit && run.leaseOwner !== null && hasEnded(run.leaseOwner)) found.set(run.runId, run);
    after = page.at(-1);
    if (page.length < PAGE) break;
  }
  return [...found.values()];
}
