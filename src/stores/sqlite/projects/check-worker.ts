import { parentPort, workerData } from "node:worker_threads";
import { checkWholeFile } from "./check-records.ts";

/** A thread of its own, because a check reads the whole file. */
parentPort!.postMessage(await checkWholeFile(workerData as string));
