import type { Launch } from "./index-jobs.ts";
import type { Job } from "./job.ts";
import type { Lease } from "./lease.ts";

/** Runs jobs in this thread: for the command line, whose work it is, and for storage that no other thread can see. */
export function launchHere(run: (job: Job, lease: Lease, stop: AbortSignal) => Promise<unknown>): Launch {
  return (job, lease) => {
    const stop = new AbortController();
    const ended = run(job, lease, stop.signal).then(
      () => {},
      () => {}, // told in the job's file
    );
    return { ended, stop: () => stop.abort() };
  };
}
