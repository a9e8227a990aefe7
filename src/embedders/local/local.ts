import type { Embedder } from "../../ports/embedder.ts";
import { type MinilmOptions, minilmEmbedder, minilmObstacle } from "./minilm.ts";
import type { ProcessEmbedder } from "./model-queue.ts";
import { staticEmbedder } from "./static.ts";

export interface LocalOptions extends MinilmOptions {
  /** Called with a message for people when MiniLM cannot run on this machine. */
  readonly onNotice?: (message: string) => void;
}

/** Opens the best local embedder: MiniLM, or the static table where the native runtime is missing. */
export async function localEmbedder(options: LocalOptions = {}): Promise<Embedder> {
  return (await minilmIfPossible(options)) ?? staticEmbedder();
}

/** Opens MiniLM, or returns `undefined` with a notice where its native runtime cannot be loaded. */
export async function minilmIfPossible({ onNotice, ...options }: LocalOptions = {}): Promise<ProcessEmbedder | undefined> {
  const reason = await obstacle(options);
  if (reason === undefined) return minilmEmbedder(options);
  onNotice?.(
    `The local model all-MiniLM-L6-v2 cannot run on this machine. The static model is used instead, with less accurate results. Reason: ${reason.split("\n")[0]}`,
  );
  return undefined;
}

// The check starts a process, and its result does not change while this one runs, so each folder is checked once.
const tried = new Map<string | undefined, Promise<string | undefined>>();
function obstacle(options: MinilmOptions): Promise<string | undefined> {
  let found = tried.get(options.modelDir);
  if (found === undefined) {
    found = minilmObstacle(options);
    tried.set(options.modelDir, found);
  }
  return found;
}
