import { pathToFileURL } from "node:url";
import { parentPort, workerData } from "node:worker_threads";
import { builtFile } from "../files/built-file.ts";
import type { ChunkedFile } from "../model/code-chunk.ts";
import type { Embedder, ThreadModel } from "../ports/embedder.ts";
import { yieldToCalls } from "../scheduling/calls.ts";
import { buffersOf } from "../text/pack-file.ts";
import { chunkFile } from "./chunking/chunk-file.ts";
import { type DerivedFile, deriveEmbedded, deriveFile } from "./derive-file.ts";
import type { WorkerMessage, WorkerTask } from "./parser-pool.ts";
import { treeSitter } from "./tree-sitter.ts";

/** One parser on a thread of its own. Whatever goes wrong here, the pool replaces the thread. */
const port = parentPort;
if (!port) throw new Error("parser-worker runs as a worker thread only.");
const { memoryBytes } = workerData as { memoryBytes: number };
const parser = await treeSitter({ memoryBytes });

port.on("message", (task: WorkerTask) => {
  yieldToCalls();
  derive(task).then(
    (file) => post({ type: "done", file }, transferable(file)),
    (error: unknown) => post({ type: "failed", reason: error instanceof Error ? error.message : String(error) }),
  );
});
post({ type: "ready" });

async function derive(task: WorkerTask): Promise<DerivedFile> {
  const { input, model } = task;
  const file = await chunk(task);
  post({ type: "parsed" });
  const embedder = model && (await open(model));
  return embedder ? deriveEmbedded(input.path, file, embedder) : deriveFile(input.path, file);
}

async function chunk({ input, syntax }: WorkerTask): Promise<ChunkedFile> {
  if (syntax) await parser.load(input.language);
  post({ type: "parsing" });
  if (!syntax) return chunkFile(input);
  return chunkFile(input, parser.readOutline);
}

let opened: { readonly key: string; readonly embedder: Promise<Embedder | undefined> } | undefined;

/** Opens the model in this thread, once. A model that cannot be read here is left to the caller, which reports why. */
function open(model: ThreadModel): Promise<Embedder | undefined> {
  const key = JSON.stringify(model);
  if (opened?.key !== key) opened = { key, embedder: load(model).catch(() => undefined) };
  return opened.embedder;
}

async function load({ module, create, options }: ThreadModel): Promise<Embedder> {
  const exports = (await import(pathToFileURL(builtFile(module)).href)) as Record<string, (options: unknown) => Embedder>;
  const embedder = exports[create]!(options);
  await embedder.embed([""]); // reads the files of the model
  return embedder;
}

/** Returns the buffers that go to the pool instead of copies of them. */
function transferable({ packed, vectors }: DerivedFile): ArrayBuffer[] {
  return [...buffersOf(packed), ...("values" in vectors ? [vectors.values.buffer as ArrayBuffer] : [])];
}

function post(message: WorkerMessage, transferred: readonly ArrayBuffer[] = []): void {
  port!.postMessage(message, transferred);
}
