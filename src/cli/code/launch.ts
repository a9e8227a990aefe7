import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import type { Launch } from "../../client/jobs/index-jobs.ts";
import { launchHere } from "../../client/jobs/launch.ts";
import type { Config } from "../../config/schema.ts";
import type { Cairn } from "../../operations/cairn.ts";
import { type IndexWork, runIndexWork } from "./index-job.ts";
import type { WatchWork } from "./watch-index.ts";

/** Where jobs run: in this thread, in one of their own, or in a process that outlives this one. */
export type Where = "here" | "thread" | "process";

/** A thread that was asked to stop ends its batch first. One that does not is ended: a batch is all or nothing. */
const STOP_MS = 5_000;

/** Enough for the largest tree that is taken. Without a limit the engine lets garbage lie around for as long as the machine has room. */
const HEAP_MB = 192;
const YOUNG_MB = 8;

export function launcher(where: Where, config: Config, cairn: Cairn | undefined): Launch {
  if (where === "thread") return (job, lease) => inThread({ config, job, lease });
  if (where === "process") return (job, lease) => inProcess({ config, job, lease });
  return launchHere((job, lease, stop) => runIndexWork({ config, job, lease }, { stop, cairn }));
}

/** Keeps the index of a project up to date, in a thread, for as long as this process runs. */
export function watchInThread(work: WatchWork): ReturnType<Launch> {
  return inThread(work);
}

function inThread(work: IndexWork | WatchWork): ReturnType<Launch> {
  const resourceLimits = { maxOldGenerationSizeMb: HEAP_MB, maxYoungGenerationSizeMb: YOUNG_MB };
  const worker = new Worker(WORKER_URL, { workerData: work, execArgv: [], resourceLimits });
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

/** Goes on by itself: it is neither waited for nor stopped with this process. */
function inProcess(work: IndexWork): ReturnType<Launch> {
  const child = spawn(process.execPath, [fileURLToPath(WORKER_URL)], { detached: true, stdio: ["pipe", "ignore", "ignore"] });
  child.on("error", () => {}); // nobody runs the job then, and the next index takes it up
  child.stdin.on("error", () => {});
  const given = new Promise<void>((resolve) => child.stdin.end(JSON.stringify(work), () => resolve()));
  child.unref();
  return { detached: true, ended: given, stop: () => {} };
}

/** Run from its TypeScript source, as the tests do, this takes the compiled program: Node 20 cannot run TypeScript in a thread. */
const WORKER_URL = import.meta.url.endsWith(".ts")
  ? new URL("../../../dist/cli/code/index-worker.js", import.meta.url)
  : new URL("./index-worker.js", import.meta.url);
