import { projectDatabaseName } from "../../model/ids.ts";
import type { EmbeddingStore } from "../../ports/embedding-store.ts";
import type { RecallStore } from "../../ports/recall-store.ts";
import type { ProjectStore, Storage } from "../../ports/storage.ts";
import { type QdrantOptions, qdrantClient } from "./client.ts";
import { type FeederOptions, feeder } from "./feeder.ts";
import { qdrantCandidates } from "./recall-store.ts";

export interface QdrantStorageOptions extends QdrantOptions, FeederOptions {
  /** Milliseconds that a failed server is not queried; default five seconds. */
  readonly pauseMs?: number;
}

/** The verbs that change vectors of records. */
const RECORD_CHANGES = ["put", "replace", "delete", "restore", "purge"] as const;

/** Wraps a storage so that Qdrant answers semantic searches. The database keeps all vectors; those of Qdrant are derived. */
export function qdrantStorage(storage: Storage, options: QdrantStorageOptions): Storage {
  const client = qdrantClient(options);
  const feed = feeder(client, options);
  const scheduled = new Set<string>();
  const pause = pauseAfterFailure(options.pauseMs ?? 5_000);

  async function withQdrant<Store extends RecallStore<never>>(
    store: Store,
    projectPath: string,
    collection: string,
    changing: readonly (keyof Store)[],
  ): Promise<Store> {
    const { embeddings } = store;
    const { outbox } = embeddings;
    if (!outbox || !store.matching) return store;
    const prefix = `cairn_${projectDatabaseName(projectPath)}_${await outbox.enable()}_${collection}_v`;
    const source = { embeddings, outbox };
    const onBehind = () => feed.schedule({ prefix, source });
    if (!scheduled.has(prefix)) onBehind(); // an earlier process may have left changes in the outbox
    scheduled.add(prefix);
    const candidates = qdrantCandidates(store, { client, prefix, outbox, onBehind, pause });
    return {
      ...notifyAfter(store, changing, onBehind),
      candidates,
      embeddings: notifyAfter<EmbeddingStore>(
        notifyAfter<EmbeddingStore>(embeddings, ["putVectors", "dropVersion"], onBehind),
        ["dropDamaged"], // the first step of `embeddings verify`
        () => feed.schedule({ prefix, source, thorough: true }),
      ),
    };
  }

  const wrapProject = async (project: ProjectStore): Promise<ProjectStore> => ({
    ...project,
    checkpoints: await withQdrant(project.checkpoints, project.projectPath, "checkpoints", [...RECORD_CHANGES]),
    knowledge: await withQdrant(project.knowledge, project.projectPath, "knowledge", [...RECORD_CHANGES, "apply"]),
    code: await withQdrant(project.code, project.projectPath, "code", ["commit", "reconcile"]),
  });

  const dropPoints = (projectPath: string) => {
    const ofProject = `cairn_${projectDatabaseName(projectPath)}_`;
    for (const prefix of [...scheduled].filter((known) => known.startsWith(ofProject))) {
      scheduled.delete(prefix);
      feed.schedule({ prefix, source: undefined });
    }
  };

  return {
    ...storage,
    create: async (projectPath) => wrapProject(await storage.create(projectPath)),
    async find(projectPath) {
      const project = await storage.find(projectPath);
      return project && wrapProject(project);
    },
    async quarantine(projectPath, problems) {
      const report = await storage.quarantine(projectPath, problems);
      dropPoints(projectPath);
      return report;
    },
    async remove(projectPath) {
      await storage.remove(projectPath);
      dropPoints(projectPath);
    },
    async close() {
      await feed.close();
      await storage.close();
    },
  };
}

/** Wraps a store so that these verbs call `notify` when they are done. */
function notifyAfter<Store extends object>(store: Store, verbs: readonly (keyof Store)[], notify: () => void): Store {
  const copy = { ...store };
  for (const verb of verbs) {
    const call = store[verb] as (...args: unknown[]) => Promise<unknown>;
    copy[verb] = (async (...args: unknown[]) => {
      const result = await call(...args);
      notify();
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
