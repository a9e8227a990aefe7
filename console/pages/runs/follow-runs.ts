import { onEvent } from "../../api/events.ts";
import type { Feed } from "../../state/feed.ts";

/** What decides whether and where a run is listed. */
export interface ListedRun {
  readonly run_id: string;
  readonly status: string;
  readonly project?: string | undefined;
  readonly updated_at: string;
}

export type RunFilter = Partial<Pick<ListedRun, "status" | "project">>;

/** Runs that one update reads: the ones that changed last. */
const NEWEST = 100;

export interface FollowRunsOptions<Run extends ListedRun> {
  readonly filter: RunFilter;
  /** Returns the runs that changed last. */
  readonly newest: (filter: RunFilter, limit: number, signal: AbortSignal) => Promise<readonly Run[]>;
  readonly reload: () => void;
}

/**
 * Keeps a list of runs current: puts in the runs that changed, and removes runs that no longer belong to it. One read covers all events that
 * arrive while another one is under way. If more runs changed than one read returns, the list must be loaded again. Returns the function that
 * ends it.
 */
export function followRuns<Run extends ListedRun>(list: Feed<Run>, { filter, newest, reload }: FollowRunsOptions<Run>): () => void {
  const controller = new AbortController();
  const isNarrow = Object.keys(filter).length > 0;
  const { signal } = controller;
  /** The latest change of any run when the list was read. A narrow list does not show it: the run may not belong to the list. */
  let readUntil = isNarrow ? newest({}, 1, signal).then(timeOfLatest, () => undefined) : undefined;
  let isReading = false;
  let isStale = false;

  async function read(): Promise<void> {
    const newestShown = list.pages.value.flat()[0]?.updated_at;
    const changed = await newest({}, NEWEST, signal);
    // Runs that left a narrow list are found only among the changed ones, so these must reach back to the previous read.
    if (isNarrow && !reachesBack(changed, await readUntil)) return reload();
    const listed = isNarrow ? await newest(filter, NEWEST, signal) : changed;
    if (newestShown !== undefined && !reachesBack(listed, newestShown)) return reload();
    for (const run of changed) if (!fits(run, filter)) list.remove(run.run_id);
    for (const run of listed.toReversed()) list.put(run);
    readUntil = Promise.resolve(timeOfLatest(changed));
  }

  async function update(): Promise<void> {
    isStale = true;
    if (isReading) return;
    isReading = true;
    while (isStale && !signal.aborted) {
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

/** Returns the time of the latest change; "" if there is no run. */
const timeOfLatest = (runs: readonly ListedRun[]) => runs[0]?.updated_at ?? "";

/** Returns whether no change after this time can be missing among the runs that changed last. */
function reachesBack(runs: readonly ListedRun[], time: string | undefined): boolean {
  return runs.length < NEWEST || (time !== undefined && runs.at(-1)!.updated_at <= time);
}

function fits({ status, project }: ListedRun, filter: RunFilter): boolean {
  return (filter.status === undefined || status === filter.status) && (filter.project === undefined || project === filter.project);
}
