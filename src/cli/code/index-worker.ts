import { constants, setPriority } from "node:os";
import { text } from "node:stream/consumers";
import { isMainThread, parentPort, workerData } from "node:worker_threads";
import { forceExitAfterGrace } from "../force-exit.ts";
import { type IndexWork, runIndexWork } from "./index-job.ts";
import { type WatchWork, watchIndex } from "./watch-index.ts";

/**
 * Runs one job or watches one project, in a thread beside the server that it must not slow down; or one job in a process that goes
 * on after the command that began it. What it has to say stands in the job's file.
 */
const stop = new AbortController();
parentPort?.once("message", () => stop.abort());
parentPort?.unref();
if (isMainThread)
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.once(signal, () => {
      stop.abort();
      forceExitAfterGrace(); // a thread is ended by the process that started it
    });

// Linux counts this for the one thread and those that it starts: whoever waits for an answer comes first. Elsewhere it would be the process.
if (isMainThread || process.platform === "linux") setPriority(constants.priority.PRIORITY_LOW);

// Through the pipe, because the configuration may hold keys, and arguments are for all to see.
const work: IndexWork | WatchWork = isMainThread ? JSON.parse(await text(process.stdin)) : workerData;
if ("watch" in work) await watchIndex(work.config, work.watch, { includeIgnored: false, signal: stop.signal });
else await runIndexWork(work, { stop: stop.signal });
