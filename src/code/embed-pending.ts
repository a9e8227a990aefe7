import type { UnembeddedChunks } from "../model/unembedded-chunks.ts";
import type { CodeStore } from "../ports/code-store.ts";
import { backfill, type FillResult, totals } from "../recall/fill.ts";
import { slots } from "../scheduling/concurrency.ts";
import { type IndexDeps, type InThread, modelForThreads } from "./index-batch.ts";

export interface EmbedPendingOptions {
  readonly signal?: AbortSignal | undefined;
  readonly progress?: ((done: number, total: number) => void) | undefined;
}

/** Chunks that a thread embeds at a time: about 100 ms of work. */
const PAGE_CHUNKS = 512;
/** Pages in progress at once: the threads embed some while others are written. */
const PAGES_AT_ONCE = 4;

/**
 * Embeds the chunks that were committed without vectors, if threads can open the model; otherwise chunks are committed with their vectors.
 * Each page is committed by itself, so an interrupted call can be repeated.
 */
export async function embedPending(
  store: CodeStore,
  { embedders, parsers }: Pick<IndexDeps, "embedders" | "parsers">,
  options: EmbedPendingOptions = {},
): Promise<FillResult> {
  const inThread = await modelForThreads(store, embedders);
  if (!inThread) return { embedded: 0, failed: 0 };
  const embedded = await embedInThreads(store, parsers, inThread, options);
  return embedded === undefined ? backfill(store.embeddings, embedders, options) : { embedded, failed: 0 };
}

/** Returns the number of embedded chunks; `undefined` if a thread or the store cannot do it. */
async function embedInThreads(
  store: CodeStore,
  parsers: IndexDeps["parsers"],
  { versionId, embedder }: InThread,
  { signal, progress }: EmbedPendingOptions,
): Promise<number | undefined> {
  const { wanted, present } = totals(await store.embeddings.counts(versionId));
  if (present >= wanted) return 0;
  progress?.(present, wanted);
  const embedding = slots(PAGES_AT_ONCE);
  let embedded = 0;
  let isServed = true;
  const embedPage = async (page: UnembeddedChunks) => {
    const made = await parsers.embed(page, embedder.threadModel!, { signal });
    if (!made) {
      isServed = false;
      return;
    }
    const { dimension, values, chars } = made;
    embedded += (await store.putVectors!({ versionId, dimension, keys: page.chunks.map(({ key }) => key), values })) ?? 0;
    embedder.countElsewhere?.(page.chunks.length, chars);
    progress?.(present + embedded, wanted);
  };
  try {
    for (let after = 0; isServed; ) {
      signal?.throwIfAborted();
      const page = await store.unembedded?.(versionId, PAGE_CHUNKS, after);
      if (!page) return undefined;
      if (page.chunks.length === 0) break;
      after = page.chunks.at(-1)!.key;
      await embedding.run(() => embedPage(page));
    }
  } finally {
    await embedding.idle();
  }
  embedding.raise();
  signal?.throwIfAborted(); // also if the last pages ended after the abort
  return isServed ? embedded : undefined;
}
