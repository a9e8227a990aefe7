import { call, type Output } from "../../api/call.ts";
import { onEvent } from "../../api/events.ts";
import type { Feed } from "../../state/feed.ts";

export type Run = Output<"run_list">["runs"][number];

export interface RunFilter {
  readonly status?: Run["status"];
  readonly project?: string;
}

/** Runs that one update reads: the ones that changed last. */
const NEWEST = 100;

/**
 * Keeps a list of runs current: puts in the runs that changed, and removes runs that no longer belong to it. One read covers all events that
 * arrive while another one is under way. If more runs changed than one read returns, the list must be loaded again. Returns the function that
 * ends it.
 */
export function followRuns(list: Feed<Run>, filter: RunFilter, reload: () => void): () => void {
  const controller = new AbortController();
  let isReading = false;
  let isStale = false;

  async function read(): Promise<void> {
    const newestShown = list.pages.value.flat()[0]?.updated_at;
    const newest = (narrow: RunFilter) => call("run_list", { ...narrow, limit: NEWEST }, controller.signal);
    const isNarrow = Object.keys(filter).length > 0;
    const { runs: changed } = await newest({});
    const { runs: listed } = isNarrow ? await newest(filter) : { runs: changed };
    const oldest = listed.length < NEWEST ? undefined : listed.at(-1);
    if (oldest && newestShown !== undefined && oldest.updated_at > newestShown) return reload();
    for (const run of changed) if (!fits(run, filter)) list.remove(run.run_id);
    for (const run of listed.toReversed()) list.put(run);
  }

  async function update(): Promise<void> {
    isStale = true;
    if (isReading) return;
    isReading = true;
    while (isStale && !controller.signal.aborted) {
      isStale = false;
      await read().catch(() => {}); // the next event reads again
    }
    isReading = false;
  }

  const stop = onEvent(({ kind, id, action }) => {
    if (kind !== "run") return;
    if (action === "deleted" && id !== undefined) list.remove(id);
    else void update();
  });
  return () => {
    stop();
    controller.abort();
  };
}

function fits({ status, project }: Run, filter: RunFilter): boolean {
  return (filter.status === undefined || status === filter.status) && (filter.project === undefined || project === filter.project);
}
