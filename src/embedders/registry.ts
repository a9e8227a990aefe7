import { CairnError } from "../model/errors.ts";
import type { Embedder } from "../ports/embedder.ts";
import type { CollectionName, Embedders } from "../ports/embedders.ts";

/** An embedder that is opened on first use. */
export interface EmbedderEntry {
  /** Name in the configuration: `minilm`, `static`, `openai`. */
  readonly name: string;
  /** Raises or returns `undefined` when it is not available on this machine. */
  readonly open: () => Promise<Embedder | undefined>;
  /** Checks whether it runs on this machine; called only before a new collection starts with it. */
  readonly usable?: () => Promise<boolean>;
}

export interface RegistryOptions {
  readonly entries: readonly EmbedderEntry[];
  /** Names in order of preference; the first available one is used. */
  readonly preferred: (collection: CollectionName) => readonly string[];
  /** Names in order of preference for an upgrade, where a slow model is acceptable. */
  readonly best: (collection: CollectionName) => readonly string[];
}

/** Manages the embedders of this process and opens each at most once. */
export function embedderRegistry({ entries, preferred, best }: RegistryOptions): Embedders {
  const opened = new Map<string, Promise<Embedder | undefined>>();
  const open = (name: string): Promise<Embedder | undefined> => {
    const entry = entries.find((candidate) => candidate.name === name);
    if (!entry) return Promise.resolve(undefined);
    let opening = opened.get(name);
    if (!opening) {
      opening = entry.open();
      opened.set(name, opening);
      opening.catch(() => opened.delete(name)); // the next use tries again
    }
    return opening;
  };
  /** Returns `undefined` for one that cannot be opened now: it must not keep the others from serving. */
  const openIfAvailable = (name: string): Promise<Embedder | undefined> =>
    open(name).catch((error: unknown) => {
      if (error instanceof CairnError && error.code === "unavailable") return undefined;
      throw error;
    });
  const firstOf = async (names: readonly string[]): Promise<Embedder | undefined> => {
    for (const name of names) {
      if ((await entries.find((entry) => entry.name === name)?.usable?.()) === false) continue;
      const embedder = await open(name);
      if (embedder) return embedder;
    }
    return undefined;
  };

  return {
    names: entries.map(({ name }) => name),
    async named(name) {
      const byName = await open(name);
      if (byName) return byName;
      for (const entry of entries) {
        const embedder = await openIfAvailable(entry.name);
        if (embedder?.model === name) return embedder;
      }
      return undefined;
    },
    preferred: (collection) => firstOf(preferred(collection)),
    best: (collection) => firstOf(best(collection)),
    async serving({ model, version, dimension }) {
      for (const { name } of entries) {
        const embedder = await openIfAvailable(name);
        if (embedder && embedder.model === model && embedder.version === version && embedder.dimension === dimension) return embedder;
      }
      return undefined;
    },
    async close() {
      const open = [...opened.values()];
      opened.clear();
      for (const opening of open) await (await opening.catch(() => undefined))?.close();
    },
  };
}
