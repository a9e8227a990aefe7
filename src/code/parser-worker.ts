import { parentPort, workerData } from "node:worker_threads";
import type { ChunkedFile } from "../model/code-chunk.ts";
import { yieldToCalls } from "../scheduling/calls.ts";
import { chunkFile } from "./chunking/chunk-file.ts";
import type { WorkerMessage, WorkerTask } from "./parser-pool.ts";
import { treeSitter } from "./tree-sitter.ts";

/** One parser on a thread of its own. Whatever goes wrong here, the pool replaces the thread. */
const port = parentPort;
if (!port) throw new Error("parser-worker runs as a worker thread only.");
const { memoryBytes } = workerData as { memoryBytes: number };
const parser = await treeSitter({ memoryBytes });

port.on("message", (task: WorkerTask) => {
  yieldToCalls();
  chunk(task).then(
    (file) => post({ type: "done", file }),
    (error: unknown) => post({ type: "failed", reason: error instanceof Error ? error.message : String(error) }),
  );
});
post({ type: "ready" });

async function chunk({ input, syntax }: WorkerTask): Promise<ChunkedFile> {
  if (syntax) await parser.load(input.language);
  post({ type: "parsing" });
  if (!syntax) return chunkFile(input);
  return chunkFile(input, parser.readOutline);
}

function post(message: WorkerMessage): void {
  port!.postMessage(message);
}
