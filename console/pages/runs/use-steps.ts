import { useEffect, useState } from "preact/hooks";
import { call, type Output } from "../../api/call.ts";

export type Step = Output<"run_history">["checkpoints"][number];

const PAGE = 100;
/** Steps that are drawn. Longer runs show their newest steps. */
const MAX = 2_000;

/** Loads the steps of a run, oldest first, and again when the run has a new one. */
export function useSteps(runId: string, lastSequence: number | undefined): readonly Step[] | undefined {
  const [steps, setSteps] = useState<readonly Step[]>();
  useEffect(() => {
    if (lastSequence === undefined) return;
    const controller = new AbortController();
    load(runId, controller.signal).then(
      (loaded) => controller.signal.aborted || setSteps(loaded),
      () => controller.signal.aborted || setSteps([]),
    );
    return () => controller.abort();
  }, [runId, lastSequence]);
  return steps;
}

async function load(runId: string, signal: AbortSignal): Promise<readonly Step[]> {
  const steps: Step[] = [];
  let before: number | undefined;
  do {
    const page = await call("run_history", { run_id: runId, limit: PAGE, ...(before !== undefined && { before }) }, signal);
    steps.push(...page.checkpoints);
    before = page.next_before;
  } while (before !== undefined && steps.length < MAX);
  return steps.reverse();
}
