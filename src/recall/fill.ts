import type { Embedder } from "../ports/embedder.ts";
import type { Embedders } from "../ports/embedders.ts";
import type { EmbeddingStore, EmbeddingVersion, PieceRef, Unembedded, VectorCounts } from "../ports/embedding-store.ts";
import { embedWithin } from "./embed-records.ts";

export interface FillOptions {
  readonly signal?: AbortSignal | undefined;
  readonly progress?: ((done: number, total: number) => void) | undefined;
  /** Texts per call of the embedder. A batch is stored at once, so a pass that may be cancelled soon has small ones. */
  readonly batch?: number | undefined;
}

export interface FillResult {
  readonly embedded: number;
  /** Pieces that the model failed to embed in this pass; `reason` is that of the last one. */
  readonly failed: number;
  readonly reason?: string | undefined;
}

/** Texts per call of the embedder by default, and the milliseconds it may take. */
const BATCH = 32;
const BATCH_MS = 120_000;
/** Consecutive failures after which the provider counts as unavailable and the pass ends. */
const GIVE_UP_AFTER = 3;

/** Embeds every piece of a record that lacks a vector in a version. Each batch is stored at once, so an interrupted pass can be repeated. */
export async function fill(
  store: EmbeddingStore,
  versionId: number,
  embedder: Embedder,
  { signal, progress, batch: size = BATCH }: FillOptions = {},
): Promise<FillResult> {
  const { wanted, present } = totals(await store.counts(versionId));
  let embedded = 0;
  let failed = 0;
  let failuresInARow = 0;
  let reason: string | undefined;
  let after: PieceRef | undefined;
  for (;;) {
    signal?.throwIfAborted();
    const batch = await store.missing(versionId, size, after);
    if (batch.length === 0) return { embedded, failed, reason };
    for (const part of [batch, ...(batch.length > 1 ? batch.map((one) => [one]) : [])]) {
      const outcome = await embedBatch(embedder, part, signal);
      if (outcome.vectors) {
        failuresInARow = 0;
        embedded += await store.putVectors(
          versionId,
          part.map((piece, index) => ({ ...piece, vector: outcome.vectors[index]! })),
        );
        if (part === batch) break; // else one by one, so that a text that cannot be embedded does not block the others
        continue;
      }
      reason = outcome.failure;
      if (part === batch && batch.length > 1) continue;
      failed++;
      if (++failuresInARow >= GIVE_UP_AFTER) return { embedded, failed: wanted - present - embedded, reason };
    }
    after = batch.at(-1)!;
    progress?.(present + embedded, wanted);
  }
}

async function embedBatch(embedder: Embedder, batch: readonly Unembedded[], signal: AbortSignal | undefined) {
  return embedWithin(
    embedder,
    batch.map(({ text }) => text),
    { timeoutMs: BATCH_MS, purpose: "document", signal },
  );
}

/** Embeds the pieces that lack a vector in the current version, if its model is available: saves leave the parts of long records, and a provider that was down whole records. */
export async function backfill(store: EmbeddingStore, embedders: Embedders, options: FillOptions = {}): Promise<FillResult> {
  const total = { embedded: 0, failed: 0, reason: undefined as string | undefined };
  for (const version of await store.versions()) {
    if (!(await isIncomplete(store, version))) continue;
    const embedder = await embedders.serving(version);
    if (!embedder) continue;
    const result = await fill(store, version.versionId, embedder, options);
    total.embedded += result.embedded;
    total.failed += result.failed;
    total.reason = result.reason ?? total.reason;
  }
  return total;
}

async function isIncomplete(store: EmbeddingStore, { versionId, isCurrent }: EmbeddingVersion): Promise<boolean> {
  if (!isCurrent) return false; // a newer version is filled by its upgrade, and an older one may stay incomplete
  const { wanted, present } = totals(await store.counts(versionId));
  return present < wanted;
}

/** Returns how many vectors a version needs and has, of whole texts and parts together. */
export function totals({ records, vectors, parts, partVectors }: VectorCounts): { readonly wanted: number; readonly present: number } {
  return { wanted: records + parts, present: vectors + partVectors };
}
