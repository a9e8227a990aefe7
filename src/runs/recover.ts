import { CairnError } from "../model/errors.ts";
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

/** Resumes every run whose lease has expired, except runs that another process acquires first. */
export async function recoverRuns<S>(
  graph: Pick<CompiledGraph<S>, "name" | "resume">,
  { limit = 1_000, concurrency = 10, ...options }: RecoverOptions<S>,
): Promise<readonly Recovery<S>[]> {
  const abandoned = await options.store.listRuns({ graph: graph.name, abandoned: true, limit });
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
