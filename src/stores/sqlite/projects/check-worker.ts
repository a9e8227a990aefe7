import { workerData } from "node:worker_threads";
import { postResult } from "../../../scheduling/run-in-thread.ts";
import { checkWholeFile } from "./check-records.ts";

/** Runs in a thread, because a check reads the whole file. */
await postResult(() => checkWholeFile(workerData as string));
