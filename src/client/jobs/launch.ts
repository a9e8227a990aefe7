import { spawn } from "node:child_process";
import type { Config } from "../../config/schema.ts";
import { builtFile } from "../../files/built-file.ts";
import type { Cairn } from "../../operations/cairn.ts";
import { startThread } from "../../scheduling/run-in-thread.ts";
import type { WatchWork } from "../watch/watch-index.ts";
import type { Launch, LaunchedJob } from "./index-jobs.ts";
import { type IndexWork, runIndexWork } from "./index-work.ts";
import type { Job } from "./job.ts";
import type { Lease } from "./lease.ts";

/** Where index jobs run: in the calling thread, in a thread of their own, or in a process that outlives the calling one. */
export type JobPlace = "here" | "thread" | "process";

/** Milliseconds in which a thread that was asked to stop may finish its batch. It is terminated afterwards: a batch is atomic. */
const STOP_MS = 5_000;

/** Megabytes of heap of an indexing thread: sufficient for the largest tree that is accepted. Without a limit V8 delays garbage collection. */
const HEAP_MB = 192;
const YOUNG_MB = 8;

/** The program of the thread or process, by its path in dist/. */
const WORKER = "client/jobs/index-worker.js";

/** Returns the function that starts index jobs in the given place. `cairn` is used by jobs that run here. */
export function launcher(place: JobPlace, config: Config, cairn: Cairn | undefined): Launch {
  if (place === "thread") return (job, lease) => startInThread({ config, job, lease });
  if (place === "process") return (job, lease) => startProcess({ config, job, lease });
  return launchHere((job, lease, stop) => runIndexWork({ config, job, lease }, { stop, cairn }));
}

/** Runs jobs in this thread: for a command that waits for its job, and for storage that no other thread can see. */
export function launchHere(run: (job: Job, lease: Lease, stop: AbortSignal) => Promise<unknown>): Launch {
  return (job, lease) => {
    const stop = new AbortController();
    const ended = run(job, lease, stop.signal).then(
      () => {},
      () => {}, // the job's file reports the error
    );
    return { ended, stop: () => stop.abort() };
  };
}

/** Keeps the index of a project up to date, in a thread, until stopped. */
export function watchInThread(work: WatchWork): LaunchedJob {
  return startInThread(work);
}

function startInThread(work: IndexWork | WatchWork): LaunchedJob {
  const resourceLimits = { maxOldGenerationSizeMb: HEAP_MB, maxYoungGenerationSizeMb: YOUNG_MB };
  const worker = startThread(WORKER, { workerData: work, resourceLimits });
  const ended = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
  worker.on("error", (error) => process.emitWarning(`The indexing thread failed: ${error.message}`, "CairnNotice"));
  return {
    ended,
    stop() {
      worker.postMessage("stop");
      const timer = setTimeout(() => void worker.terminate(), STOP_MS);
      void ended.then(() => clearTimeout(timer));
    },
  };
}

/** Starts a process that continues after this one: it is neither awaited nor stopped. */
function startProcess(work: IndexWork): LaunchedJob {
  const child = spawn(process.execPath, [builtFile(WORKER)], { detached: true, stdio: ["pipe", "ignore", "ignore"] });
  child.on("error", () => {}); // no process runs the job then, and the next index continues it
  child.stdin.on("error", () => {});
  const sent = new Promise<void>((resolve) => child.stdin.end(JSON.stringify(work), () => resolve()));
  child.unref();
  return { detached: true, ended: sent, stop: () => {} };
}
