import type { CollectionName, Embedders } from "../ports/embedders.ts";
import type { EmbeddingStore, EmbeddingVersion, VersionedVector } from "../ports/embedding-store.ts";
import { embedWithin } from "./embed-within.ts";

/** Milliseconds that a save waits for its vector. After that the record is stored without one and left to the backfill. */
const SAVE_EMBED_MS = 8_000;

export interface SaveVectors {
  /** One list per text. */
  readonly vectors: readonly (readonly VersionedVector[])[];
  /** Whether every text has a vector in the current version; always true when embedding is disabled. */
  readonly embedded: boolean;
  readonly failure?: string | undefined;
}

/** Embeds texts that are about to be stored: for the current version and for newer ones that an upgrade is filling. */
export async function vectorsFor(
  store: EmbeddingStore,
  embedders: Embedders,
  collection: CollectionName,
  texts: readonly string[],
  { signal, timeoutMs = SAVE_EMBED_MS }: { readonly signal?: AbortSignal | undefined; readonly timeoutMs?: number } = {},
): Promise<SaveVectors> {
  const versions = await liveVersions(store, embedders, collection);
  const vectors: VersionedVector[][] = texts.map(() => []);
  let failure: string | undefined;
  let embedded = true;
  for (const version of versions) {
    const embedder = await embedders.serving(version);
    const outcome = embedder
      ? await embedWithin(embedder, texts, { timeoutMs, purpose: "document", signal })
      : { failure: `the model ${version.model} is not available here`, vectors: undefined };
    if (outcome.vectors)
      for (const [index, vector] of outcome.vectors.entries()) vectors[index]!.push({ versionId: version.versionId, vector });
    else if (version.isCurrent) {
      embedded = false;
      failure = outcome.failure;
    }
  }
  return { vectors, embedded, failure };
}

/** Returns whether each record that was stored with these vectors has one in the current version: another version may have become current meanwhile. */
export async function allCoverCurrent(store: EmbeddingStore, records: readonly (readonly VersionedVector[])[]): Promise<boolean> {
  const current = (await store.versions()).find(({ isCurrent }) => isCurrent);
  return !current || records.every((vectors) => vectors.some(({ versionId }) => versionId === current.versionId));
}

/** Returns the current version and newer ones. A collection without a version starts with the preferred model. */
async function liveVersions(store: EmbeddingStore, embedders: Embedders, collection: CollectionName): Promise<readonly EmbeddingVersion[]> {
  const versions = await store.versions();
  const current = versions.find(({ isCurrent }) => isCurrent);
  if (current) return versions.filter(({ versionId }) => versionId >= current.versionId);
  const preferred = await embedders.preferred(collection);
  if (!preferred) return [];
  const { model, version, dimension } = preferred; // a store receives data, never an embedder
  return [await store.addVersion({ model, version, dimension })];
}
