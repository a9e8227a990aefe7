import type { AnchorRecord } from "../freshness/anchor-record.ts";
import { staleNote } from "../freshness/judge.ts";
import { markHits, searchedTopK } from "../freshness/mark-hits.ts";
import type { MarkRecords } from "../freshness/mark-records.ts";
import { type Anchor, type WithCodePath, withHead } from "../model/anchor.ts";
import { CHECKPOINT_TEXTS, type Checkpoint } from "../model/checkpoint.ts";
import { type DamagedRecord, damagedRecordError } from "../model/damaged-record.ts";
import { CairnError } from "../model/errors.ts";
import { idempotencyKey } from "../model/idempotency.ts";
import { checkpointText } from "../model/stored-record.ts";
import type { CheckpointFilter, CheckpointStore, DayCount, PutOptions, TagCount } from "../ports/checkpoint-store.ts";
import type { Embedders } from "../ports/embedders.ts";
import type { Storage } from "../ports/storage.ts";
import { assertWhole } from "../recall/assert-whole.ts";
import type { Backfiller } from "../recall/backfiller.ts";
import { type Deletion, type DeletionRules, deleteRecord, importDeleted, purgeRecord, restoreRecord } from "../recall/deletion.ts";
import { type Collection, importNew, storeEmbedded } from "../recall/embed-records.ts";
import { readFirst } from "../recall/read-first.ts";
import { utcTimes } from "../recall/search.ts";
import { estimateTokens } from "../text/estimate-tokens.ts";
import { type Redact, type RedactedField, redactFields } from "../text/redact.ts";
import { mayNameCode } from "../text/terms.ts";
import {
  type CheckpointList,
  type ExportCheckpoints,
  type ExportedPage,
  exportPage,
  type ListCheckpoints,
  listCheckpoints,
} from "./list.ts";
import {
  type AllCheckpoints,
  type AllDays,
  type CountAllDays,
  countAllDays,
  type ListAllCheckpoints,
  listAllCheckpoints,
} from "./list-all.ts";
import { assertPruneRule, type Pruned, type PruneRules, prune } from "./prune.ts";
import { type Resumed, type ResumeLevel, resumeAt } from "./resume.ts";
import { type CheckpointAnswer, type SearchCheckpoints, searchProject } from "./search.ts";
import { type SearchAllAnswer, type SearchAllCheckpoints, searchAllProjects } from "./search-all.ts";
import { sessionStartText } from "./session-start.ts";
import { listSessions, type SessionList } from "./sessions.ts";
import { type Imported, readRecords } from "./transfer.ts";

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

/** The content of a new checkpoint. */
export interface SaveCheckpoint extends WithCodePath {
  readonly projectPath: string;
  readonly summary: string;
  readonly description?: string | undefined;
  readonly context?: Readonly<Record<string, string>> | undefined;
  readonly tags?: readonly string[] | undefined;
  /** The code that it depends on, such as `src/a.ts#parse`. Default: what its texts name. */
  readonly anchors?: readonly string[] | undefined;
  /** Ids of checkpoints that this one replaces. */
  readonly supersedes?: readonly string[] | undefined;
  /** Identifies the call: repeated with the same key within 24 hours, it returns the first checkpoint instead of saving another. */
  readonly idempotencyKey?: string | undefined;
}

export interface UpdateCheckpoint extends Omit<SaveCheckpoint, "summary" | "idempotencyKey"> {
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

/** Selects the checkpoints that are counted per day. */
export interface CountDays extends CheckpointFilter {
  readonly projectPath: string;
  /** Minutes by which the time zone is ahead of UTC; default 0. */
  readonly utcOffsetMinutes?: number | undefined;
  readonly limit?: number | undefined;
}

export interface ResumeCheckpoint extends WithCodePath {
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
  get(input: CheckpointRef & WithCodePath): Promise<Checkpoint>;
  list(input: ListCheckpoints): Promise<CheckpointList>;
  /** Returns the tags of a project with the number of checkpoints that have them, the most frequent first. */
  tags(input: { readonly projectPath: string; readonly limit?: number | undefined }): Promise<{ readonly tags: readonly TagCount[] }>;
  /** Returns the latest days with the number of checkpoints created on them, for a time zone. */
  days(input: CountDays): Promise<{ readonly days: readonly DayCount[] }>;
  /** Changes the fields that are present, and anchors the record again. A superseded record stands for itself again. */
  update(input: UpdateCheckpoint, options?: CallOptions): Promise<SavedCheckpoint>;
  /** Deletes a checkpoint: it leaves lists and searches, and `restore` undoes it until its retention ends. */
  delete(input: CheckpointRef): Promise<Deletion>;
  /** Undoes a deletion. A checkpoint that is not deleted stays as it is. Raises `not_found` after a purge. */
  restore(input: CheckpointRef, options?: CallOptions): Promise<SavedCheckpoint>;
  /** Erases a checkpoint at once, deleted or not, also from the files on disk. */
  purge(input: CheckpointRef): Promise<{ readonly purged: true }>;
  /** Returns what a session needs to resume, at a level of detail. */
  resume(input: ResumeCheckpoint): Promise<Resumed & { readonly damaged: readonly DamagedRecord[] }>;
  /** Searches every project that the caller may access. */
  searchAll(input: SearchAllCheckpoints, options?: CallOptions): Promise<SearchAllAnswer>;
  /** Returns the sessions of agents that saved checkpoints, the latest first. */
  sessions(input: { readonly projectPath: string; readonly limit?: number | undefined }): Promise<SessionList>;
  /** Returns what the next session of an agent receives at its start, with its size. */
  sessionStart(input: { readonly projectPath: string }): Promise<{ readonly text?: string | undefined; readonly tokens: number }>;
  /** Returns a page of the checkpoints of every project that the caller may access, newest first. */
  listAll(input: ListAllCheckpoints): Promise<AllCheckpoints>;
  /** Counts the checkpoints of every project that the caller may access per day. */
  daysAll(input: CountAllDays): Promise<AllDays>;
  /** Returns a page of all checkpoints, and after them the deleted ones unless `withoutDeleted` is true. */
  export(input: ExportCheckpoints): Promise<ExportedPage>;
  /** Erases old checkpoints by age and count. This cannot be undone. */
  prune(input: PruneRules & { readonly projectPath: string }, options?: ProgressOptions): Promise<Pruned>;
  /** Stores exported records. Existing ids are skipped, so an interrupted import can be repeated. */
  import(input: { readonly projectPath: string; readonly records: readonly unknown[] }, options?: ProgressOptions): Promise<Imported>;
}

export interface CheckpointDeps extends DeletionRules {
  readonly storage: Storage;
  readonly embedders: Embedders;
  readonly backfiller: Backfiller;
  readonly newId: () => string;
  /** Removes secrets from everything that is stored or embedded. */
  readonly redact: Redact;
  readonly anchorRecord: AnchorRecord;
  readonly markRecords: MarkRecords;
}

/** Tokens of a resumed checkpoint; enough for the longest one. */
const RESUME_TOKENS = 20_000;

const TAGS_LISTED = 50;

const DAYS_LISTED = 90;

/** Attempts to update a record that others update at the same time. */
const UPDATE_ATTEMPTS = 20;

export function checkpoints({
  storage,
  embedders,
  backfiller,
  now,
  newId,
  redact,
  anchorRecord,
  markRecords,
  deletedDays,
}: CheckpointDeps): Checkpoints {
  const deps = { embedders, backfiller, redact };
  const rules = { now, deletedDays };
  const collectionOf = (database: string, { embeddings }: CheckpointStore): Collection => ({ name: "checkpoints", database, embeddings });

  async function store(
    to: CheckpointStore,
    checkpoint: Checkpoint,
    verb: "put" | "replace",
    { signal, supersedes, once }: CallOptions & Pick<PutOptions, "supersedes" | "once">,
  ): Promise<SavedCheckpoint | undefined> {
    const write: Parameters<typeof storeEmbedded>[3] = async (vectors) => {
      if (verb === "replace") return to.replace(checkpoint, vectors, { supersedes });
      return to.put(checkpoint, vectors, { savedAt: checkpoint.createdAt, supersedes, once });
    };
    const embedded = await storeEmbedded(deps, collectionOf(checkpoint.projectPath, to), checkpointText(checkpoint), write, signal);
    return embedded === undefined ? undefined : { ...checkpoint, embedded };
  }

  const missing = (id: string) =>
    new CairnError("not_found", `No checkpoint ${JSON.stringify(id)} in this project. Use checkpoint_list to see its checkpoints.`);

  /** Saves must stay fast, so a text that cannot name code is not looked at. */
  async function anchorsOf(
    codePath: string,
    { summary, description, context }: Pick<Checkpoint, "summary" | "description" | "context">,
    given: readonly string[] | undefined,
  ): Promise<readonly Anchor[]> {
    const texts = [summary, description];
    const named = given ? given.length > 0 : [...texts, ...Object.values(context)].some(mayNameCode);
    return named ? anchorRecord({ projectPath: codePath, given, texts, context }) : [];
  }

  async function assertExist(to: CheckpointStore, ids: readonly string[]): Promise<void> {
    const { records } = await to.getMany(ids);
    const known = new Set(records.map(({ id }) => id));
    const unknown = ids.find((id) => !known.has(id));
    if (unknown !== undefined) throw missing(unknown);
  }

  const service: Checkpoints = {
    async save({ projectPath, codePath = projectPath, anchors: given, supersedes, idempotencyKey: key, ...input }, { signal } = {}) {
      const { fields, redacted } = redactFields(input, CHECKPOINT_TEXTS, redact);
      const { summary, description = "", context = {}, tags = [] } = fields;
      const anchors = await anchorsOf(codePath, { summary, description, context }, given);
      const at = now();
      const checkpoint: Checkpoint = {
        id: newId(),
        projectPath,
        summary,
        description,
        context,
        tags: distinctTags(tags),
        anchors,
        supersededBy: "",
        tokenCount: estimateTokens(checkpointText({ summary, description })),
        createdAt: at,
        updatedAt: at,
        createdOrder: at,
        updatedOrder: at,
        revision: 1,
      };
      const { checkpoints: to } = await storage.create(projectPath);
      const once = key === undefined ? undefined : idempotencyKey("checkpoint_save", key, at);
      const first = once && (await readFirst(to, once));
      if (first) return withRedacted(first, redacted);
      if (supersedes) await assertExist(to, supersedes);
      const saved = (await store(to, checkpoint, "put", { signal, supersedes, once })) ?? (await readFirst(to, once!))!;
      return withRedacted(saved, redacted);
    },

    async search({ freshOnly, codePath, ...input }, { signal } = {}) {
      const { projectPath, topK } = input;
      const project = await storage.find(projectPath);
      if (!project) return { hits: [], match: "none", degraded: [], damaged: [] };
      const answer = await searchProject(deps, project.checkpoints, { ...input, topK: searchedTopK({ topK, freshOnly }) }, signal);
      return { ...answer, hits: await markHits(markRecords, answer.hits, { projectOf: () => codePath ?? projectPath, topK, freshOnly }) };
    },

    async get({ projectPath, codePath = projectPath, id }) {
      const project = await storage.find(projectPath);
      const checkpoint = await project?.checkpoints.get(id);
      if (!checkpoint) throw missing(id);
      return (await markRecords(codePath, [checkpoint]))[0]!;
    },

    list: (input) => listCheckpoints({ storage, markRecords }, input),

    export: (input) => exportPage({ storage, markRecords }, input),

    async days({ projectPath, utcOffsetMinutes = 0, limit = DAYS_LISTED, ...filter }) {
      const project = await storage.find(projectPath);
      return { days: (await project?.checkpoints.days({ filter: utcTimes(filter), utcOffsetMinutes, limit })) ?? [] };
    },

    async tags({ projectPath, limit = TAGS_LISTED }) {
      return { tags: (await (await storage.find(projectPath))?.checkpoints.tags(limit)) ?? [] };
    },

    async update({ projectPath, codePath = projectPath, id, anchors: given, supersedes, ...input }, { signal } = {}) {
      assertWhole("description", input.description);
      const { fields, redacted } = redactFields(input, CHECKPOINT_TEXTS, redact);
      const { summary, description, context, tags } = fields;
      const project = await storage.find(projectPath);
      if (!project) throw missing(id);
      if (supersedes) await assertExist(project.checkpoints, supersedes);
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
        const anchors = withHead(await anchorsOf(codePath, edited, given), given ? [] : before.anchors);
        const at = now();
        const after: Checkpoint = {
          ...edited,
          anchors,
          supersededBy: "",
          tokenCount: estimateTokens(checkpointText(edited)),
          updatedAt: at,
          updatedOrder: at,
          revision: before.revision + 1,
        };
        const saved = await store(project.checkpoints, after, "replace", { signal, supersedes });
        if (saved) return withRedacted(saved, redacted);
      }
      throw new CairnError("conflict", "Other callers keep changing this checkpoint. Try again.", { retryAfterMs: 500 });
    },

    async delete({ projectPath, id }) {
      return deleteRecord((await storage.find(projectPath))?.checkpoints, id, rules, missing);
    },

    async restore({ projectPath, id }, { signal } = {}) {
      const project = await storage.find(projectPath);
      if (!project) throw missing(id);
      const to = project.checkpoints;
      return restoreRecord({
        ...{ store: to, id, missing },
        embed: (checkpoint, write) => storeEmbedded(deps, collectionOf(projectPath, to), checkpointText(checkpoint), write, signal),
      });
    },

    async purge({ projectPath, id }) {
      return purgeRecord((await storage.find(projectPath))?.checkpoints, id, missing);
    },

    async resume({ projectPath, codePath = projectPath, id, level = "full", maxTokens = RESUME_TOKENS }) {
      const project = await storage.find(projectPath);
      const newest = id === undefined ? await project?.checkpoints.list({ limit: 1, offset: 0, sortBy: "created_at" }) : undefined;
      const checkpoint = id === undefined ? newest?.checkpoints[0] : await project?.checkpoints.get(id);
      const [marked] = checkpoint ? await markRecords(codePath, [checkpoint]) : [];
      if (marked) return { ...resumeAt(marked, level, maxTokens), damaged: newest?.damaged ?? [] };
      if (id !== undefined) throw missing(id);
      if (newest?.damaged[0]) throw damagedRecordError(newest.damaged[0]);
      throw new CairnError("not_found", "This project has no checkpoint to resume from. Save one with checkpoint_save.");
    },

    sessions: (input) => listSessions(storage, input),
    async sessionStart({ projectPath }) {
      const text = await sessionStartText(service, { projectPath }, async (records) => records.map(staleNote));
      return { text, tokens: text === undefined ? 0 : estimateTokens(text) };
    },
    listAll: (input) => listAllCheckpoints({ storage, markRecords }, input),
    daysAll: (input) => countAllDays({ storage }, input),

    async searchAll({ freshOnly, ...input }, { signal } = {}) {
      const { topK } = input;
      const answer = await searchAllProjects(storage, deps, { ...input, topK: searchedTopK({ topK, freshOnly }) }, signal);
      return {
        ...answer,
        hits: await markHits(markRecords, answer.hits, { projectOf: ({ record }) => record.projectPath, topK, freshOnly }),
      };
    },

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
      const { records, deleted, problems, redacted } = await readRecords(input, projectPath, { redact, now: now() });
      if (records.length + deleted.length === 0) return { imported: 0, present: 0, problems, redacted };
      const { checkpoints: to } = await storage.create(projectPath);
      const stored = await importDeleted(to, deleted, signal);
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
      return { imported: counts.imported + stored.imported, present: counts.present + stored.present, problems, redacted };
    },
  };
  return service;
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
