import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointPendingWrite,
  type CheckpointTuple,
  copyCheckpoint,
  type DeltaChannelHistory,
  getCheckpointId,
  maxChannelVersion,
  type PendingWrite,
  type SerializerProtocol,
  TASKS,
  WRITES_IDX_MAP,
} from "@langchain/langgraph-checkpoint";
import { relocateStore } from "../../migrate/relocate.ts";
import { CairnError } from "../../model/errors.ts";
import { type Clock, systemClock } from "../../model/ids.ts";
import { findAbandonedMigration } from "../../stores/sqlite/migration/lock.ts";
import { migratedTo } from "../../stores/sqlite/migration/record.ts";
import { shortcut } from "./plain-json.ts";
import { type PrunedThreads, type PruneThreads, pruneThreads } from "./retention.ts";
import type { CheckpointKey, StoredWrite, ThreadStore } from "./thread-store.ts";

type Found = NonNullable<Awaited<ReturnType<ThreadStore["get"]>>>;

/** Selects the database of LangGraph threads. */
export type CairnSaverOptions = (
  | { readonly storage: "sqlite"; readonly path: string }
  | { readonly storage: "postgres"; readonly url: string; readonly poolMax?: number }
) & {
  readonly serde?: SerializerProtocol;
  readonly now?: Clock;
};

const PAGE = 100;
const LINEAGE_PAGE = 500;

/** Keeps the threads of LangGraph.js in Cairn's SQLite or PostgreSQL, with retention. */
export class CairnSaver extends BaseCheckpointSaver {
  readonly #open: () => Promise<ThreadStore>;
  #opening: Promise<ThreadStore> | undefined;
  #format: ReturnType<typeof shortcut>;

  constructor({ serde, ...options }: CairnSaverOptions) {
    super(serde);
    this.#format = shortcut(this.serde, serde === undefined);
    this.#open = () => openThreads(options);
  }

  async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const { thread_id: threadId, checkpoint_ns: namespace = "" } = config.configurable ?? {};
    if (threadId === undefined) return undefined;
    const checkpointId = getCheckpointId(config) || undefined;
    const store = await this.#store();
    const found = await store.get(
      name("thread_id", threadId),
      name("checkpoint_ns", namespace),
      checkpointId && name("checkpoint_id", checkpointId),
    );
    return found && !found.stored.hidden ? this.#tuple(store, found) : undefined;
  }

  async *list(config: RunnableConfig, options: CheckpointListOptions = {}): AsyncGenerator<CheckpointTuple> {
    const { thread_id, checkpoint_ns, checkpoint_id } = config.configurable ?? {};
    const { filter = {}, before } = options;
    let remaining = options.limit ?? Number.POSITIVE_INFINITY;
    if (remaining <= 0) return;
    const query = {
      threadId: optional("thread_id", thread_id),
      namespace: optional("checkpoint_ns", checkpoint_ns),
      checkpointId: checkpoint_id ? name("checkpoint_id", checkpoint_id) : undefined,
      before: optional("checkpoint_id", before?.configurable?.checkpoint_id),
    };
    const wanted = Object.entries(filter);
    const store = await this.#store();
    for (let after: CheckpointKey | undefined; ; ) {
      const limit = Math.min(PAGE, wanted.length > 0 ? PAGE : remaining);
      const page = await store.list({ ...query, limit, after });
      for (const stored of page) {
        const metadata = (await this.#format.load(stored.metadata)) as Record<string, unknown>;
        if (!wanted.every(([key, value]) => metadata[key] === value)) continue;
        const found = await store.get(stored.threadId, stored.namespace, stored.checkpointId);
        if (!found) continue; // removed in the meantime
        yield await this.#tuple(store, found);
        if (--remaining <= 0) return;
      }
      after = page.at(-1);
      if (page.length < limit || !after) return;
    }
  }

  async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    const { thread_id, checkpoint_ns = "", checkpoint_id } = config.configurable ?? {};
    const key = {
      threadId: required("put", "thread_id", thread_id),
      namespace: name("checkpoint_ns", checkpoint_ns),
      checkpointId: name("checkpoint_id", checkpoint.id),
    };
    const copy = copyCheckpoint(checkpoint);
    const values = copy.channel_values;
    const present = Object.keys(values).filter((channel) => values[channel] !== undefined);
    const changed = present.filter((channel) => channel in newVersions);
    const unchanged = present.filter((channel) => !(channel in newVersions));
    for (const channel of unchanged) delete values[channel];
    const deltas = Object.keys(metadata.counters_since_delta_snapshot ?? {}).filter((channel) => !present.includes(channel));
    const dumped = this.#format.dump(copy);
    const dumpedMetadata = this.#format.dump(metadata);
    const parentId = checkpoint_id === undefined ? null : name("checkpoint_id", checkpoint_id);
    const store = await this.#store();
    await store.put({ ...key, parentId, checkpoint: await dumped, metadata: await dumpedMetadata, changed, unchanged, deltas });
    return { configurable: { thread_id: key.threadId, checkpoint_ns: key.namespace, checkpoint_id: key.checkpointId } };
  }

  async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    const { thread_id, checkpoint_ns = "", checkpoint_id } = config.configurable ?? {};
    const key = {
      threadId: required("put writes", "thread_id", thread_id),
      namespace: name("checkpoint_ns", checkpoint_ns),
      checkpointId: required("put writes", "checkpoint_id", checkpoint_id),
    };
    const task = name("task_id", taskId);
    const stored = await Promise.all(
      writes.map(async ([channel, value], position) => ({
        taskId: task,
        index: WRITES_IDX_MAP[channel] ?? position,
        channel,
        value: await this.#format.dump(value),
      })),
    );
    await (await this.#store()).putWrites(key, stored);
  }

  async deleteThread(threadId: string): Promise<void> {
    await (await this.#store()).deleteThread(name("thread_id", threadId));
  }

  /** One walk along the ancestors for all channels; only the checkpoints that hold a channel's last full value are read. */
  override async getDeltaChannelHistory({
    config,
    channels,
  }: {
    config: RunnableConfig;
    channels: string[];
  }): Promise<Record<string, DeltaChannelHistory>> {
    const { thread_id, checkpoint_ns: namespace = "" } = config.configurable ?? {};
    const checkpointId = getCheckpointId(config);
    const history = new Map(channels.map((channel) => [channel, { writes: [] as CheckpointPendingWrite[] } as DeltaChannelHistory]));
    if (channels.length === 0 || thread_id === undefined || !checkpointId) return Object.fromEntries(history);
    const threadId = name("thread_id", thread_id);
    const store = await this.#store();
    const open = new Set(channels);
    for (let from = checkpointId; open.size > 0; ) {
      const line = await store.lineage({ threadId, namespace, checkpointId: from }, LINEAGE_PAGE);
      const ancestors = line.slice(1); // the first is where this page began
      if (ancestors.length === 0) break;
      const writes = await store.writes(
        threadId,
        namespace,
        ancestors.map((ancestor) => ancestor.checkpointId),
        [...open],
      );
      const byCheckpoint = grouped(writes);
      for (const ancestor of ancestors) {
        if (open.size === 0) break;
        for (const write of [...(byCheckpoint.get(ancestor.checkpointId) ?? [])].reverse())
          if (open.has(write.channel)) history.get(write.channel)!.writes.unshift(await this.#write(write));
        const ends = ancestor.channels.filter((channel) => open.has(channel));
        if (ends.length === 0) continue;
        const found = await store.get(threadId, namespace, ancestor.checkpointId);
        const { channel_values: values } = await this.#checkpoint(found!);
        for (const channel of ends) {
          history.get(channel)!.seed = values[channel];
          open.delete(channel);
        }
      }
      if (line.length < LINEAGE_PAGE) break;
      from = line.at(-1)!.checkpointId;
    }
    return Object.fromEntries(history);
  }

  /** Removes old checkpoints, which LangGraph's own savers keep for ever. What newer ones need stays. */
  async prune(options: PruneThreads): Promise<PrunedThreads> {
    return pruneThreads(await this.#store(), options);
  }

  async close(): Promise<void> {
    const opening = this.#opening;
    this.#opening = undefined;
    await (await opening)?.close();
  }

  #store(): Promise<ThreadStore> {
    this.#opening ??= this.#open();
    return this.#opening;
  }

  /** The checkpoint with all its values, those of unchanged channels fetched from where they stand. */
  async #checkpoint({ stored, homes }: Found): Promise<Checkpoint> {
    const checkpoint = (await this.#format.load(stored.checkpoint)) as Checkpoint;
    const loaded = new Map<string, Checkpoint>();
    for (const [channel, home] of Object.entries(stored.homes)) {
      const typed = homes.get(home);
      if (!typed) continue;
      let there = loaded.get(home);
      if (!there) {
        there = (await this.#format.load(typed)) as Checkpoint;
        loaded.set(home, there);
      }
      checkpoint.channel_values[channel] = there.channel_values[channel];
    }
    return checkpoint;
  }

  async #tuple(store: ThreadStore, found: Found): Promise<CheckpointTuple> {
    const { stored, writes } = found;
    const { threadId, namespace, checkpointId, parentId } = stored;
    const checkpoint = await this.#checkpoint(found);
    if (checkpoint.v < 4 && parentId !== null) await this.#migrateSends(store, checkpoint, threadId, namespace, parentId);
    const pendingWrites: CheckpointPendingWrite[] = [];
    for (const write of writes) pendingWrites.push(await this.#write(write));
    const configOf = (id: string) => ({ configurable: { thread_id: threadId, checkpoint_ns: namespace, checkpoint_id: id } });
    return {
      config: configOf(checkpointId),
      checkpoint,
      metadata: (await this.#format.load(stored.metadata)) as CheckpointMetadata,
      pendingWrites,
      ...(parentId === null ? {} : { parentConfig: configOf(parentId) }),
    };
  }

  async #write({ taskId, channel, value }: StoredWrite): Promise<CheckpointPendingWrite> {
    return [taskId, channel, await this.#format.load(value)];
  }

  /** Before format 4, what was sent to tasks stood in the writes of the parent. */
  async #migrateSends(store: ThreadStore, checkpoint: Checkpoint, threadId: string, namespace: string, parentId: string): Promise<void> {
    const sends: unknown[] = [];
    for (const { value } of await store.writes(threadId, namespace, [parentId], [TASKS])) sends.push(await this.#format.load(value));
    checkpoint.channel_values ??= {};
    checkpoint.channel_values[TASKS] = sends;
    checkpoint.channel_versions ??= {};
    const versions = Object.values(checkpoint.channel_versions);
    checkpoint.channel_versions[TASKS] = versions.length > 0 ? maxChannelVersion(...versions) : this.getNextVersion(undefined);
  }
}

async function openThreads(options: CairnSaverOptions): Promise<ThreadStore> {
  if (options.storage === "sqlite") {
    const { sqliteThreads } = await import("./sqlite.ts");
    const { path, now = systemClock } = options;
    return relocateStore({
      local: sqliteThreads({ path, now }),
      locate: () => migratedTo(path),
      findAbandoned: () => findAbandonedMigration(path, undefined),
      openMigrated: async (url) => (await import("./postgres.ts")).postgresThreads({ url }),
    });
  }
  if (options.storage === "postgres") {
    const { postgresThreads } = await import("./postgres.ts");
    return postgresThreads(options);
  }
  throw new CairnError("invalid_input", 'CairnSaver: storage must be "sqlite" with a path, or "postgres" with a url.');
}

function required(what: string, field: string, value: unknown): string {
  if (value === undefined)
    throw new CairnError(
      "invalid_input",
      `Failed to ${what}: the config is missing the required "${field}" in its "configurable". Pass one, such as { configurable: { ${field}: "…" } }.`,
    );
  return name(field, value);
}

function optional(field: string, value: unknown): string | undefined {
  return value === undefined ? undefined : name(field, value);
}

/** A name that every store can hold. */
function name(field: string, value: unknown): string {
  if (typeof value !== "string" || value.includes("\u0000") || value.length > 1_000)
    throw new CairnError("invalid_input", `"${field}" must be a text of at most 1,000 characters without NUL.`, { details: { field } });
  return value;
}

function grouped(writes: readonly StoredWrite[]): Map<string, StoredWrite[]> {
  const groups = new Map<string, StoredWrite[]>();
  for (const write of writes) groups.set(write.checkpointId, [...(groups.get(write.checkpointId) ?? []), write]);
  return groups;
}
