import { parentPort, workerData } from "node:worker_threads";
import { findProblems } from "./find-problems.ts";

/** A thread of its own, because a check reads the whole file. */
parentPort!.postMessage(await findProblems(workerData as string));
