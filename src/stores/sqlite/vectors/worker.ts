import { parentPort } from "node:worker_threads";
import { serve } from "./serve.ts";

/** The scan thread: one per process for all its files. */
serve(parentPort!);
