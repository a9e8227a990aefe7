import type { Embedder } from "../../ports/embedder.ts";
import { type MinilmEmbedder, type MinilmOptions, minilmEmbedder, minilmObstacle } from "./minilm.ts";
import { staticEmbedder } from "./static.ts";

export interface LocalOptions extends MinilmOptions {
  /** Told when MiniLM cannot run here, in words for a person. */
  readonly onNotice?: (message: string) => void;
}

/** The best embedder that runs here without network: MiniLM, or the static table where the native runtime is missing. */
export async function localEmbedder(options: LocalOptions = {}): Promise<Embedder> {
  return (await minilmIfPossible(options)) ?? staticEmbedder();
}

/** MiniLM, or `undefined` and a notice where its native runtime cannot be loaded. */
export async function minilmIfPossible({ onNotice, ...options }: LocalOptions = {}): Promise<MinilmEmbedder | undefined> {
  const reason = await obstacle(options);
  if (reason === undefined) return minilmEmbedder(options);
  onNotice?.(
    `The local model all-MiniLM-L6-v2 cannot run here; the simpler built-in model is used, with less exact results. Reason: ${reason.split("\n")[0]}`,
  );
  return undefined;
}

// Trying starts a process. What it finds does not change while this one runs, so each folder is tried once.
const tried = new Map<string | undefined, Promise<string | undefined>>();
function obstacle(options: MinilmOptions): Promise<string | undefined> {
  let found = tried.get(options.modelDir);
  if (found === undefined) {
    found = minilmObstacle(options);
    tried.set(options.modelDir, found);
  }
  return found;
}
