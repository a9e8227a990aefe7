import { constants, setPriority } from "node:os";
import { text } from "node:stream/consumers";
import { isMainThread, parentPort, workerData } from "node:worker_threads";
import { forceExitAfterGrace } from "../../scheduling/force-exit.ts";
import { type WatchWork, watchIndex } from "../watch/watch-index.ts";
import { type IndexWork, runIndexWork } from "./index-work.ts";

/**
 * Runs one job or watches one project in a thread, so that the MCP server stays responsive; or runs one job in a process that outlives the
 * command that started it. The job's file reports progress and result.
 */
const stop = new AbortController();
parentPort?.once("message", () => stop.abort());
parentPort?.unref();
if (isMainThread)
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.once(signal, () => {
      stop.abort();
      forceExitAfterGrace(); // a thread is terminated by the process that started it
    });

// Calls in flight come first. On Linux the priority applies to this thread and the threads it starts; elsewhere it would apply to the whole process.
if (isMainThread || process.platform === "linux") setPriority(constants.priority.PRIORITY_LOW);

// A process gets its work through the pipe: the configuration may hold keys, and other users can see arguments.
const work: IndexWork | WatchWork = isMainThread ? JSON.parse(await text(process.stdin)) : workerData;
if ("watch" in work) await watchIndex(work.config, work.watch, { includeIgnored: false, signal: stop.signal });
else await runIndexWork(work, { stop: stop.signal });
