import type { UnembeddedChunks } from "../model/unembedded-chunks.ts";
import type { ThreadModel } from "../ports/embedder.ts";
import type { ChunkFileInput } from "./chunking/chunk-file.ts";
import type { DerivedFile, ThreadVectors } from "./derive-file.ts";

/** What a parser thread and the pool send each other in messages and share in memory. */

export type WorkerTask = FileTask | EmbedTask;

export interface EmbedTask {
  readonly stored: UnembeddedChunks;
  readonly model: ThreadModel;
}

export interface FileTask {
  readonly input: ChunkFileInput & { readonly language: string };
  /** False: cut it by lines, whatever its language. */
  readonly syntax: boolean;
  readonly model?: ThreadModel | "later" | undefined;
}

/** A message wakes a thread, which costs as much as parsing a small file: several tasks are one message, and so are their results. */
export type WorkerMessage =
  | { readonly type: "ready" }
  | { readonly type: "done"; readonly results: readonly (DerivedFile | ThreadVectors | undefined)[] }
  /** The task at `PLACE` failed. */
  | { readonly type: "failed"; readonly reason: string };

/** What a thread writes to the memory that it shares with the pool: a counter of steps, the place of its task, and the step. */
export const STEPS = 0;
export const PLACE = 1;
export const STEP = 2;
/** Loading a grammar or a model, and embedding: slow only on a machine that is overloaded. */
export const LOADING = 0;
/** The grammar of the task is loaded: from now on the time counts as that of the file. */
export const PARSING = 1;
/** The file is cut into chunks: what follows takes time in proportion to its length. */
export const PACKING = 2;
