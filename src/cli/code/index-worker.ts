import { text } from "node:stream/consumers";
import { isMainThread, parentPort, workerData } from "node:worker_threads";
import { type IndexWork, runIndexWork } from "./index-job.ts";

/**
 * Runs one job, in a thread beside the server that it must not slow down, or in a process that goes on after the command that
 * began it. What it has to say stands in the job's file.
 */
const stop = new AbortController();
parentPort?.once("message", () => stop.abort());
parentPort?.unref();
if (isMainThread) for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => stop.abort());

// Through the pipe, because the configuration may hold keys, and arguments are for all to see.
const work: IndexWork = isMainThread ? JSON.parse(await text(process.stdin)) : workerData;
await runIndexWork(work, { stop: stop.signal });
