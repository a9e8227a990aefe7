import type { DamagedRecord, RecordReport } from "../model/damaged-record.ts";
import { CairnError } from "../model/errors.ts";
import type { CollectionName, Embedders } from "../ports/embedders.ts";
import type { EmbeddingStore, EmbeddingVersion, VectorCounts } from "../ports/embedding-store.ts";
import { type FillOptions, fill, totals } from "./fill.ts";

export interface CollectionRef {
  readonly projectPath: string;
  readonly collection: CollectionName;
}

export interface VersionState extends EmbeddingVersion, VectorCounts {
  /** Whether this process has its model. */
  readonly available: boolean;
}

export interface UpgradeOptions extends FillOptions {
  /** Returns as soon as the version exists; filling and switching continue in the background. */
  readonly background?: boolean | undefined;
}

export interface UpgradeResult {
  readonly versionId: number;
  readonly model: string;
  readonly embedded: number;
  readonly switched: boolean;
}

export interface VerifyResult {
  /** Rows of the mirror `embedding_records` that did not match the records and their vectors, and were rewritten. */
  readonly mirrorRepaired: number;
  /** Vectors, of whole texts and parts. */
  readonly checked: number;
  /** Ids of records that had a damaged vector. */
  readonly damaged: readonly string[];
  /** Vectors that were computed again, and vectors that are still missing. */
  readonly recomputed: number;
  readonly missing: number;
  /** Records of the collection that do not match their checksums. */
  readonly damagedRecords: readonly DamagedRecord[];
}

/** Embedding versions of a collection: change the model without losing a vector, and roll back. */
export interface Embeddings {
  list(ref: CollectionRef): Promise<readonly VersionState[]>;
  /** Fills a version for the model, or for the best available one, next to the current one, then switches. An interrupted upgrade resumes when repeated. */
  upgrade(ref: CollectionRef & { readonly model?: string | undefined }, options?: UpgradeOptions): Promise<UpgradeResult>;
  /** Switches back to an earlier version that was not pruned: the newest one before the current, or the given one. */
  rollback(ref: CollectionRef & { readonly versionId?: number | undefined }, options?: FillOptions): Promise<UpgradeResult>;
  /** Checks every vector of the current version and recomputes damaged and missing ones. */
  verify(ref: CollectionRef, options?: FillOptions): Promise<VerifyResult>;
  /** Deletes every version except the current one. */
  prune(ref: CollectionRef): Promise<{ readonly versions: number; readonly vectors: number }>;
}

export interface EmbeddingsDeps {
  readonly embedders: Embedders;
  /** The collection's embedding store, or `undefined` if nothing was ever stored in it. */
  readonly find: (ref: CollectionRef) => Promise<EmbeddingStore | undefined>;
  readonly checkRecords: (projectPath: string) => Promise<RecordReport>;
  /** Runs work that continues after the answer. It handles failures, and aborts the work when the process ends. */
  readonly inBackground: (work: (signal: AbortSignal) => Promise<unknown>) => void;
}

export function embeddings({ embedders, find, checkRecords, inBackground }: EmbeddingsDeps): Embeddings {
  const existing = async (ref: CollectionRef): Promise<EmbeddingStore> => {
    const store = await find(ref);
    if (!store) throw new CairnError("not_found", `No ${ref.collection} are stored in ${ref.projectPath} yet.`);
    return store;
  };

  /** Fills a version, then switches to it. Records saved meanwhile are embedded in the next round. */
  async function switchTo(store: EmbeddingStore, version: EmbeddingVersion, options: FillOptions): Promise<UpgradeResult> {
    const embedder = await embedders.serving(version);
    if (!embedder) throw new CairnError("unavailable", `The model ${version.model} is not available. Configure it, then try again.`);
    let embedded = 0;
    for (;;) {
      const result = await fill(store, version.versionId, embedder, options);
      embedded += result.embedded;
      if (result.failed > 0)
        throw new CairnError(
          "unavailable",
          `${result.failed} texts could not be embedded (${result.reason}). ${embedded} were embedded and stay; searches use the previous version. Run the upgrade again.`,
          {
            details: { embedded, failed: result.failed },
          },
        );
      if ((await store.makeCurrent(version.versionId)) === "switched")
        return { versionId: version.versionId, model: version.model, embedded, switched: true };
    }
  }

  return {
    async list(ref) {
      const store = await find(ref);
      if (!store) return [];
      return Promise.all(
        (await store.versions()).map(async (version) => ({
          ...version,
          ...(await store.counts(version.versionId)),
          available: (await embedders.serving(version)) !== undefined,
        })),
      );
    },

    async upgrade({ model, ...ref }, options = {}) {
      const store = await existing(ref);
      const embedder = model === undefined ? await embedders.best(ref.collection) : await embedders.named(model);
      if (!embedder && model === undefined)
        throw new CairnError("unavailable", "Embedding is disabled. Configure a model, then try again.");
      if (!embedder) throw new CairnError("invalid_input", `model: ${JSON.stringify(model)} is not one of ${embedders.names.join(", ")}`);
      const { model: name, version: modelVersion, dimension } = embedder;
      const version = await store.addVersion({ model: name, version: modelVersion, dimension });
      if (!options.background) return switchTo(store, version, options);
      inBackground((signal) => switchTo(store, version, { ...options, signal }));
      return { versionId: version.versionId, model: version.model, embedded: 0, switched: version.isCurrent };
    },

    async rollback({ versionId, ...ref }, options = {}) {
      const store = await existing(ref);
      const versions = await store.versions();
      const current = versions.find(({ isCurrent }) => isCurrent);
      const target =
        versionId === undefined
          ? versions.filter(({ versionId: id, isCurrent }) => !isCurrent && id < (current?.versionId ?? 0)).at(-1)
          : versions.find(({ versionId: id }) => id === versionId);
      if (!target)
        throw new CairnError("not_found", "There is no earlier version to roll back to. Use embeddings_list to see the versions.");
      return switchTo(store, target, options);
    },

    async verify(ref, options = {}) {
      const store = await existing(ref);
      const current = (await store.versions()).find(({ isCurrent }) => isCurrent);
      const { damaged: records } = await checkRecords(ref.projectPath);
      const damagedRecords = records.filter(({ collection }) => collection === ref.collection);
      const checked = current ? totals(await store.counts(current.versionId)).present : 0;
      const damaged = current ? await store.dropDamaged(current.versionId) : [];
      const mirrorRepaired = (await store.repairMirror?.()) ?? 0;
      if (!current) return { checked, damaged, recomputed: 0, missing: 0, mirrorRepaired, damagedRecords };
      const embedder = await embedders.serving(current);
      const { embedded } = embedder ? await fill(store, current.versionId, embedder, options) : { embedded: 0 };
      const { wanted, present } = totals(await store.counts(current.versionId));
      return { checked, damaged, recomputed: embedded, missing: wanted - present, mirrorRepaired, damagedRecords };
    },

    async prune(ref) {
      const store = await existing(ref);
      let vectors = 0;
      const old = (await store.versions()).filter(({ isCurrent }) => !isCurrent);
      for (const { versionId } of old) vectors += await store.dropVersion(versionId);
      return { versions: old.length, vectors };
    },
  };
}
