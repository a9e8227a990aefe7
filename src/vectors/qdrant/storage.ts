import type { EmbeddingStore } from "../../ports/embedding-store.ts";
import type { RecallStore } from "../../ports/recall-store.ts";
import type { ProjectStore, Storage } from "../../ports/storage.ts";
import { qdrantClient } from "./client.ts";
import { qdrantCollections } from "./collections.ts";
import { type FeederOptions, feeder } from "./feeder.ts";
import { qdrantHealth } from "./health.ts";
import { qdrantCandidates } from "./recall-store.ts";
import type { QdrantOptions } from "./request.ts";
import { type Comparison, type Mirrored, type QdrantServer, removeTenants, sync, tenantsOf } from "./sync.ts";

export interface QdrantStorageOptions extends QdrantOptions, FeederOptions {
  /** Milliseconds that a failed server, or a failed tenant, is not queried; default five seconds. */
  readonly pauseMs?: number;
  /** Milliseconds between two comparisons of points because a search found too few; default one minute. */
  readonly compareEveryMs?: number;
}

/** The verbs that change vectors of records. */
const RECORD_CHANGES = ["put", "replace", "delete", "restore", "purge"] as const;

const COLLECTIONS = ["checkpoints", "knowledge", "code"] as const;

/** Wraps a storage so that Qdrant answers semantic searches. The database keeps all vectors; those of Qdrant are derived. */
export function qdrantStorage(storage: Storage, options: QdrantStorageOptions): Storage {
  const client = qdrantClient(options);
  const server: QdrantServer = { client, collections: qdrantCollections(client), refused: new Set() };
  const health = qdrantHealth(options.pauseMs ?? 5_000);
  const feed = feeder(health, options);
  const wrapped = new WeakMap<ProjectStore, ProjectStore>();
  /** When points were last compared, by collection of a project. The first pass always compares: an earlier process may have stopped. */
  const compared = new Map<string, number>();
  /** The tenants that this process wrote, by project, for the case that its database cannot be read any more. */
  const written = new Map<string, Set<string>>();

  function schedule(mirrored: Mirrored, wanted: Comparison): void {
    const { projectPath, collection } = mirrored;
    const key = keyOf(projectPath, collection);
    const last = compared.get(key);
    const mayCompare = last === undefined || Date.now() - last >= (options.compareEveryMs ?? 60_000);
    const comparison = last === undefined && wanted === "none" ? "count" : wanted === "count" && !mayCompare ? "none" : wanted;
    if (comparison !== "none") compared.set(key, Date.now());
    const run = async (needed: Comparison, signal: AbortSignal) => {
      if (!(await storage.find(projectPath))) return; // another process deleted the project
      const tenants = await tenantsOf(mirrored);
      written.set(projectPath, new Set([...(written.get(projectPath) ?? []), ...tenants]));
      await sync(server, mirrored, needed, signal);
    };
    feed.schedule({ key, run }, comparison);
  }

  function withQdrant<Store extends RecallStore<never>>(
    store: Store,
    projectPath: string,
    collection: string,
    changing: readonly (keyof Store)[],
  ): Store {
    const { embeddings } = store;
    const { outbox } = embeddings;
    if (!outbox || !store.matching) return store;
    const mirrored = { projectPath, collection, embeddings, outbox };
    const key = keyOf(projectPath, collection);
    const onChange = () => schedule(mirrored, "none");
    const pause = { reason: () => health.reason(key), failed: (error: unknown) => health.failed(key, error) };
    const candidates = qdrantCandidates(store, { client, mirrored, onBehind: (wanted) => schedule(mirrored, wanted), pause });
    return {
      ...notifyAfter(store, changing, onChange),
      candidates(query: Parameters<Store["candidates"]>[0]) {
        if (!compared.has(key)) onChange(); // an earlier process may have left changes in the outbox
        return candidates(query);
      },
      embeddings: notifyAfter<EmbeddingStore>(
        notifyAfter<EmbeddingStore>(embeddings, ["putVectors", "dropVersion"], onChange),
        ["dropDamaged"], // the first step of `embeddings verify`
        () => schedule(mirrored, "points"),
      ),
    };
  }

  function wrapProject(project: ProjectStore): ProjectStore {
    const { projectPath } = project;
    const found = wrapped.get(project);
    if (found) return found;
    const wrapper = {
      ...project,
      checkpoints: withQdrant(project.checkpoints, projectPath, "checkpoints", [...RECORD_CHANGES]),
      knowledge: withQdrant(project.knowledge, projectPath, "knowledge", [...RECORD_CHANGES, "apply"]),
      code: withQdrant(project.code, projectPath, "code", ["commit", "reconcile"]),
    };
    wrapped.set(project, wrapper);
    return wrapper;
  }

  /** Returns the tenants of a project that is about to be deleted. */
  async function tenantsOfProject(projectPath: string): Promise<readonly string[]> {
    const tenants = [...(written.get(projectPath) ?? [])];
    try {
      const project = await storage.find(projectPath);
      if (!project) return tenants;
      for (const collection of COLLECTIONS) {
        const { embeddings } = project[collection];
        if (embeddings.outbox) tenants.push(...(await tenantsOf({ projectPath, collection, embeddings, outbox: embeddings.outbox })));
      }
    } catch {
      // A damaged database cannot say more than this process knows. Points that stay are in no search.
    }
    return [...new Set(tenants)];
  }

  async function dropAfter<T>(projectPath: string, remove: () => Promise<T>): Promise<T> {
    const tenants = await tenantsOfProject(projectPath);
    const result = await remove();
    written.delete(projectPath);
    for (const collection of COLLECTIONS) {
      feed.cancel(keyOf(projectPath, collection));
      compared.delete(keyOf(projectPath, collection));
    }
    const run = (_: Comparison, signal: AbortSignal) => removeTenants(server, tenants, signal);
    if (tenants.length > 0) feed.schedule({ key: JSON.stringify(tenants), run }, "none");
    return result;
  }

  return {
    ...storage,
    create: async (projectPath) => wrapProject(await storage.create(projectPath)),
    async find(projectPath) {
      const project = await storage.find(projectPath);
      return project && wrapProject(project);
    },
    quarantine: (projectPath, problems) => dropAfter(projectPath, () => storage.quarantine(projectPath, problems)),
    remove: (projectPath) => dropAfter(projectPath, () => storage.remove(projectPath)),
    async close() {
      await feed.close();
      await storage.close();
    },
  };
}

/** Returns the key of one collection of a project in this process. */
const keyOf = (projectPath: string, collection: string): string => JSON.stringify([projectPath, collection]);

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
