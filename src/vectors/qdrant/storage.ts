import { projectDatabaseName } from "../../model/ids.ts";
import type { EmbeddingStore } from "../../ports/embedding-store.ts";
import type { RecallStore } from "../../ports/recall-store.ts";
import type { ProjectStore, Storage } from "../../ports/storage.ts";
import { type QdrantOptions, qdrantClient } from "./client.ts";
import { type FeederOptions, feeder } from "./feeder.ts";
import { qdrantCandidates } from "./recall-store.ts";

export interface QdrantStorageOptions extends QdrantOptions, FeederOptions {
  /** How long a server that failed is not asked again; default five seconds. */
  readonly pauseMs?: number;
}

/** The same storage with searches by meaning answered by Qdrant. The database keeps all vectors; Qdrant's are derived from them. */
export function qdrantStorage(storage: Storage, options: QdrantStorageOptions): Storage {
  const client = qdrantClient(options);
  const feed = feeder(client, options);
  const met = new Set<string>();
  const pause = pauseAfterFailure(options.pauseMs ?? 5_000);

  async function mirrored<Store extends RecallStore<never>>(
    store: Store,
    projectPath: string,
    collection: string,
    changing: readonly (keyof Store)[],
  ): Promise<Store> {
    const { embeddings } = store;
    const { outbox } = embeddings;
    if (!outbox || !store.matching) return store;
    const prefix = `cairn_${projectDatabaseName(projectPath)}_${await outbox.enable()}_${collection}_v`;
    const onBehind = () => feed.schedule({ prefix, embeddings, outbox });
    if (!met.has(prefix)) onBehind(); // what an earlier process left waiting
    met.add(prefix);
    const candidates = qdrantCandidates(store, { client, prefix, outbox, onBehind, pause });
    return {
      ...afterwards(store, changing, onBehind),
      candidates,
      embeddings: afterwards<EmbeddingStore>(
        afterwards<EmbeddingStore>(embeddings, ["putVectors", "dropVersion"], onBehind),
        ["dropDamaged"], // `embeddings verify` begins so
        () => feed.schedule({ prefix, embeddings, outbox, thorough: true }),
      ),
    };
  }

  const wrapped = async (project: ProjectStore): Promise<ProjectStore> => ({
    ...project,
    checkpoints: await mirrored(project.checkpoints, project.projectPath, "checkpoints", ["put", "replace", "delete", "deleteMany"]),
    knowledge: await mirrored(project.knowledge, project.projectPath, "knowledge", ["put", "replace", "delete", "apply"]),
    code: await mirrored(project.code, project.projectPath, "code", ["commit", "reconcile"]),
  });

  return {
    ...storage,
    create: async (projectPath) => wrapped(await storage.create(projectPath)),
    async find(projectPath) {
      const project = await storage.find(projectPath);
      return project && wrapped(project);
    },
    async close() {
      await feed.close();
      await storage.close();
    },
  };
}

/** The store with these verbs followed by a notice. */
function afterwards<Store extends object>(store: Store, verbs: readonly (keyof Store)[], then: () => void): Store {
  const copy = { ...store };
  for (const verb of verbs) {
    const call = store[verb] as (...args: unknown[]) => Promise<unknown>;
    copy[verb] = (async (...args: unknown[]) => {
      const result = await call(...args);
      then();
      return result;
    }) as Store[typeof verb];
  }
  return copy;
}

function pauseAfterFailure(pauseMs: number) {
  let until = 0;
  let last = "";
  return {
    reason: () => (Date.now() < until ? last : undefined),
    failed(reason: string) {
      last = reason;
      until = Date.now() + pauseMs;
    },
  };
}
