import { assertPruneRule, selectPrunable } from "../model/run-rules.ts";
import type { PruneOptions, PruneReport, RunStore } from "../ports/run-store.ts";

const PAGE = 100;

/** Counts what `prune` would delete, and changes nothing. */
export async function countPrunable(
  store: RunStore,
  rules: Pick<PruneOptions, "olderThan" | "keepLast">,
  runId: string | undefined,
  signal: AbortSignal | undefined,
): Promise<PruneReport> {
  assertPruneRule(rules);
  let [checkpoints, runs, bytes] = [0, 0, 0];
  for await (const run of runId === undefined ? allRuns(store) : [await store.getRun(runId)]) {
    signal?.throwIfAborted();
    if (!run) continue;
    const history = await store.history(run.runId);
    const prunable = selectPrunable(run, history, rules);
    if (prunable === "run") runs++;
    const gone = prunable === "run" ? history : history.filter(({ sequence }) => prunable.includes(sequence));
    checkpoints += gone.length;
    for (const { size } of gone) bytes += size;
  }
  return { checkpoints, runs, bytes };
}

async function* allRuns(store: RunStore) {
  for (let page = await store.listRuns({ limit: PAGE }); page.length > 0; page = await store.listRuns({ limit: PAGE, after: page.at(-1)! }))
    yield* page;
}
