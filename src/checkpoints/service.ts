import { CHECKPOINT_TEXTS, type Checkpoint, type CheckpointSort } from "../model/checkpoint.ts";
import { type DamagedRecord, damagedRecordError } from "../model/damaged-record.ts";
import { CairnError } from "../model/errors.ts";
import type { Clock } from "../model/ids.ts";
import { checkpointText } from "../model/stored-record.ts";
import type { CheckpointFilter, CheckpointStore, TagCount } from "../ports/checkpoint-store.ts";
import type { Embedders } from "../ports/embedders.ts";
import type { Storage } from "../ports/storage.ts";
import type { Backfiller } from "../recall/backfiller.ts";
import { type Collection, importNew, storeEmbedded } from "../recall/embed-records.ts";
import { utcTimes } from "../recall/search.ts";
import { decodeCursor, nextCursor } from "../text/cursor.ts";
import { estimateTokens } from "../text/estimate-tokens.ts";
import { type Redact, type RedactedField, redactFields } from "../text/redact.ts";
import { fitCheckpoints } from "./fit.ts";
import { assertPruneRule, type Pruned, type PruneRules, prune } from "./prune.ts";
import { type Resumed, type ResumeLevel, resumeAt } from "./resume.ts";
import {
  type CheckpointAnswer,
  type SearchAllAnswer,
  type SearchAllCheckpoints,
  type SearchCheckpoints,
  searchAllProjects,
  searchProject,
} from "./search.ts";
import { type Imported, readRecords } from "./transfer.ts";

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

/** The content of a new checkpoint. */
export interface SaveCheckpoint {
  readonly projectPath: string;
  readonly summary: string;
  readonly description?: string | undefined;
  readonly context?: Readonly<Record<string, string>> | undefined;
  readonly tags?: readonly string[] | undefined;
}

export interface UpdateCheckpoint extends Omit<SaveCheckpoint, "summary"> {
  readonly id: string;
  readonly summary?: string | undefined;
}

/** A checkpoint that was just stored. */
export interface SavedCheckpoint extends Checkpoint {
  /** False until the checkpoint has a vector; keyword search finds it already. */
  readonly embedded: boolean;
  /** Secrets removed before it was stored; absent when there were none. */
  readonly redacted?: readonly RedactedField[] | undefined;
}

/** Selects and orders the checkpoints of a list. */
export interface ListCheckpoints extends CheckpointFilter {
  readonly projectPath: string;
  readonly limit?: number | undefined;
  readonly offset?: number | undefined;
  readonly cursor?: string | undefined;
  readonly sortBy?: CheckpointSort | undefined;
  /** Approximate size of the answer in tokens: long texts are cut first, then the page ends earlier. */
  readonly maxTokens?: number | undefined;
}

/** One page of checkpoints. */
export interface CheckpointList {
  readonly checkpoints: readonly Checkpoint[];
  /** Records within the page that are damaged and were skipped. They count in `total`. */
  readonly damaged: readonly DamagedRecord[];
  readonly total: number;
  /** Where the next page starts; absent on the last page. */
  readonly nextCursor?: string | undefined;
  /** Records shortened to fit into `maxTokens`. */
  readonly shortened: number;
}

export interface ResumeCheckpoint {
  readonly projectPath: string;
  /** Default: the newest. */
  readonly id?: string | undefined;
  readonly level?: ResumeLevel | undefined;
  readonly maxTokens?: number | undefined;
}

export interface ProgressOptions extends CallOptions {
  readonly progress?: ((done: number, total: number | undefined) => void) | undefined;
}

export interface CheckpointRef {
  readonly projectPath: string;
  readonly id: string;
}

/** Saved context of agents, per project. */
export interface Checkpoints {
  save(input: SaveCheckpoint, options?: CallOptions): Promise<SavedCheckpoint>;
  search(input: SearchCheckpoints, options?: CallOptions): Promise<CheckpointAnswer>;
  get(input: CheckpointRef): Promise<Checkpoint>;
  list(input: ListCheckpoints): Promise<CheckpointList>;
  /** Returns the tags of a project with the number of checkpoints that have them, the most frequent first. */
  tags(input: { readonly projectPath: string; readonly limit?: number | undefined }): Promise<{ readonly tags: readonly TagCount[] }>;
  /** Changes the fields that are present. */
  update(input: UpdateCheckpoint, options?: CallOptions): Promise<SavedCheckpoint>;
  delete(input: CheckpointRef): Promise<{ readonly deleted: boolean }>;
  /** Returns what a session needs to resume, at a level of detail. */
  resume(input: ResumeCheckpoint): Promise<Resumed & { readonly damaged: readonly DamagedRecord[] }>;
  /** Searches every project that the caller may access. */
  searchAll(input: SearchAllCheckpoints, options?: CallOptions): Promise<SearchAllAnswer>;
  /** Deletes old checkpoints by age and count. */
  prune(input: PruneRules & { readonly projectPath: string }, options?: ProgressOptions): Promise<Pruned>;
  /** Stores exported records. Existing ids are skipped, so an interrupted import can be repeated. */
  import(input: { readonly projectPath: string; readonly records: readonly unknown[] }, options?: ProgressOptions): Promise<Imported>;
}

export interface CheckpointDeps {
  readonly storage: Storage;
  readonly embedders: Embedders;
  readonly backfiller: Backfiller;
  readonly now: Clock;
  readonly newId: () => string;
  /** Removes secrets from everything that is stored or embedded. */
  readonly redact: Redact;
}

/** Tokens of a resumed checkpoint; enough for the longest one. */
const RESUME_TOKENS = 20_000;

const TAGS_LISTED = 50;

/** Attempts to update a record that others update at the same time. */
const UPDATE_ATTEMPTS = 20;

export function checkpoints({ storage, embedders, backfiller, now, newId, redact }: CheckpointDeps): Checkpoints {
  const deps = { embedders, backfiller, redact };
  const collectionOf = (database: string, { embeddings }: CheckpointStore): Collection => ({ name: "checkpoints", database, embeddings });

  async function store(
    to: CheckpointStore,
    checkpoint: Checkpoint,
    verb: "put" | "replace",
    signal: AbortSignal | undefined,
  ): Promise<SavedCheckpoint | undefined> {
    const write: Parameters<typeof storeEmbedded>[3] = async (vectors) => {
      if (verb === "replace") return to.replace(checkpoint, vectors);
      await to.put(checkpoint, vectors, { savedAt: checkpoint.createdAt });
      return true;
    };
    const embedded = await storeEmbedded(deps, collectionOf(checkpoint.projectPath, to), checkpointText(checkpoint), write, signal);
    return embedded === undefined ? undefined : { ...checkpoint, embedded };
  }

  const missing = (id: string) =>
    new CairnError("not_found", `No checkpoint ${JSON.stringify(id)} in this project. Use checkpoint_list to see its checkpoints.`);

  return {
    async save({ projectPath, ...input }, { signal } = {}) {
      const { fields, redacted } = redactFields(input, CHECKPOINT_TEXTS, redact);
      const { summary, description = "", context = {}, tags = [] } = fields;
      const at = now();
      const checkpoint: Checkpoint = {
        id: newId(),
        projectPath,
        summary,
        description,
        context,
        tags: distinctTags(tags),
        tokenCount: estimateTokens(checkpointText({ summary, description })),
        createdAt: at,
        updatedAt: at,
        createdOrder: at,
        updatedOrder: at,
        revision: 1,
      };
      const { checkpoints: to } = await storage.create(projectPath);
      return withRedacted((await store(to, checkpoint, "put", signal))!, redacted);
    },

    async search(input, { signal } = {}) {
      const project = await storage.find(input.projectPath);
      return project ? searchProject(deps, project.checkpoints, input, signal) : { hits: [], match: "none", degraded: [], damaged: [] };
    },

    async get({ projectPath, id }) {
      const project = await storage.find(projectPath);
      const checkpoint = await project?.checkpoints.get(id);
      if (!checkpoint) throw missing(id);
      return checkpoint;
    },

    async list({ projectPath, limit = 10, offset = 0, cursor, sortBy = "created_at", maxTokens = Number.POSITIVE_INFINITY, ...filter }) {
      const after = cursor === undefined ? undefined : decodeCursor(cursor, sortBy);
      const project = await storage.find(projectPath);
      if (!project) return { checkpoints: [], damaged: [], total: 0, shortened: 0 };
      const page = await project.checkpoints.list({ filter: utcTimes(filter), limit: limit + 1, offset, sortBy, after });
      const records = page.checkpoints.slice(0, limit);
      const { records: shown, shortened } = fitCheckpoints(records, maxTokens);
      const orderOf = ({ createdOrder, updatedOrder }: Checkpoint) => (sortBy === "created_at" ? createdOrder : updatedOrder);
      const next = nextCursor(sortBy, { read: page.checkpoints, shown, orderOf });
      return { checkpoints: shown, damaged: page.damaged, total: page.total, shortened, nextCursor: next };
    },

    async tags({ projectPath, limit = TAGS_LISTED }) {
      return { tags: (await (await storage.find(projectPath))?.checkpoints.tags(limit)) ?? [] };
    },

    async update({ projectPath, id, ...input }, { signal } = {}) {
      const { fields, redacted } = redactFields(input, CHECKPOINT_TEXTS, redact);
      const { summary, description, context, tags } = fields;
      const project = await storage.find(projectPath);
      if (!project) throw missing(id);
      for (let attempt = 0; attempt < UPDATE_ATTEMPTS; attempt++) {
        const before = await project.checkpoints.get(id);
        if (!before) throw missing(id);
        const edited = {
          ...before,
          summary: summary ?? before.summary,
          description: description ?? before.description,
          context: context ?? before.context,
          tags: tags ? distinctTags(tags) : before.tags,
        };
        const at = now();
        const after: Checkpoint = {
          ...edited,
          tokenCount: estimateTokens(checkpointText(edited)),
          updatedAt: at,
          updatedOrder: at,
          revision: before.revision + 1,
        };
        const saved = await store(project.checkpoints, after, "replace", signal);
        if (saved) return withRedacted(saved, redacted);
      }
      throw new CairnError("conflict", "Other callers keep changing this checkpoint. Try again.", { retryAfterMs: 500 });
    },

    async delete({ projectPath, id }) {
      const project = await storage.find(projectPath);
      return { deleted: (await project?.checkpoints.delete(id)) ?? false };
    },

    async resume({ projectPath, id, level = "full", maxTokens = RESUME_TOKENS }) {
      const project = await storage.find(projectPath);
      const newest = id === undefined ? await project?.checkpoints.list({ limit: 1, offset: 0, sortBy: "created_at" }) : undefined;
      const checkpoint = id === undefined ? newest?.checkpoints[0] : await project?.checkpoints.get(id);
      if (checkpoint) return { ...resumeAt(checkpoint, level, maxTokens), damaged: newest?.damaged ?? [] };
      if (id !== undefined) throw missing(id);
      if (newest?.damaged[0]) throw damagedRecordError(newest.damaged[0]);
      throw new CairnError("not_found", "This project has no checkpoint to resume from. Save one with checkpoint_save.");
    },

    searchAll: (input, { signal } = {}) => searchAllProjects(storage, deps, input, signal),

    async prune({ projectPath, ...rules }, options = {}) {
      assertPruneRule(rules);
      const project = await storage.find(projectPath);
      if (!project) return { matched: 0, deleted: 0, dryRun: rules.dryRun ?? false, examples: [] };
      return prune(project.checkpoints, utcTimes(rules), {
        signal: options.signal,
        progress: (done) => options.progress?.(done, undefined),
      });
    },

    async import({ projectPath, records: input }, { signal, progress } = {}) {
      const { records, problems, redacted } = await readRecords(input, projectPath, { redact, now: now() });
      if (records.length === 0) return { imported: 0, present: 0, problems, redacted };
      const { checkpoints: to } = await storage.create(projectPath);
      const counts = await importNew(deps, collectionOf(projectPath, to), {
        records,
        getMany: (ids) => to.getMany(ids),
        textOf: checkpointText,
        put: async (checkpoint, vectors) => {
          await to.put({ ...checkpoint, tags: distinctTags(checkpoint.tags) }, vectors);
          return true;
        },
        ...{ signal, progress },
      });
      return { ...counts, problems, redacted };
    },
  };
}

function withRedacted(saved: SavedCheckpoint, redacted: readonly RedactedField[]): SavedCheckpoint {
  return redacted.length > 0 ? { ...saved, redacted } : saved;
}

/** Removes tags that differ only in case; the first spelling stays. */
function distinctTags(tags: readonly string[]): string[] {
  const seen = new Map<string, string>();
  for (const tag of tags) if (!seen.has(tag.toLowerCase())) seen.set(tag.toLowerCase(), tag);
  return [...seen.values()];
}
