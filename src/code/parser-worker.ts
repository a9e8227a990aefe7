import { pathToFileURL } from "node:url";
import { parentPort, workerData } from "node:worker_threads";
import { builtFile } from "../files/built-file.ts";
import type { ChunkedFile } from "../model/code-chunk.ts";
import type { Embedder, ThreadModel } from "../ports/embedder.ts";
import { yieldToCalls } from "../scheduling/calls.ts";
import { buffersOf } from "../text/pack-file.ts";
import { chunkFile } from "./chunking/chunk-file.ts";
import { type DerivedFile, deriveEmbedded, deriveFile, deriveWithoutVectors, embedStored, type ThreadVectors } from "./derive-file.ts";
import {
  type EmbedTask,
  type FileTask,
  LOADING,
  PACKING,
  PARSING,
  PLACE,
  STEP,
  STEPS,
  type WorkerMessage,
  type WorkerTask,
} from "./parser-messages.ts";
import { treeSitter } from "./tree-sitter.ts";

/** One parser on a thread of its own. Whatever goes wrong here, the pool replaces the thread. */
const port = parentPort;
if (!port) throw new Error("parser-worker runs as a worker thread only.");
const { memoryBytes, progress } = workerData as { memoryBytes: number; progress: Int32Array };
const parser = await treeSitter({ memoryBytes });

port.on("message", (tasks: readonly WorkerTask[]) => {
  perform(tasks).then(
    (results) => post({ type: "done", results }, results.flatMap(transferable)),
    (error: unknown) => post({ type: "failed", reason: error instanceof Error ? error.message : String(error) }),
  );
});
post({ type: "ready" });

async function perform(tasks: readonly WorkerTask[]): Promise<(DerivedFile | ThreadVectors | undefined)[]> {
  const results: (DerivedFile | ThreadVectors | undefined)[] = [];
  for (const [place, task] of tasks.entries()) {
    yieldToCalls();
    Atomics.store(progress, PLACE, place);
    begin(LOADING);
    results.push(await ("stored" in task ? embed(task) : derive(task)));
  }
  return results;
}

/** Lets the pool see which step the time counts for. */
function begin(step: number): void {
  Atomics.store(progress, STEP, step);
  Atomics.add(progress, STEPS, 1);
}

async function embed({ stored, model }: EmbedTask): Promise<ThreadVectors | undefined> {
  const embedder = await open(model);
  return embedder && embedStored(stored, embedder);
}

async function derive(task: FileTask): Promise<DerivedFile> {
  const { input, model } = task;
  const file = await chunk(task);
  begin(PACKING);
  if (model === "later") return deriveWithoutVectors(input.path, file);
  const embedder = model && (await open(model));
  return embedder ? deriveEmbedded(input.path, file, embedder) : deriveFile(input.path, file);
}

async function chunk({ input, syntax }: FileTask): Promise<ChunkedFile> {
  if (syntax) await parser.load(input.language);
  begin(PARSING);
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
function transferable(result: DerivedFile | ThreadVectors | undefined): ArrayBuffer[] {
  if (!result) return [];
  if (!("packed" in result)) return [result.values.buffer as ArrayBuffer];
  const { packed, vectors } = result;
  return [...buffersOf(packed), ...(typeof vectors === "object" && "values" in vectors ? transferable(vectors) : [])];
}

function post(message: WorkerMessage, transferred: readonly ArrayBuffer[] = []): void {
  port!.postMessage(message, transferred);
}
