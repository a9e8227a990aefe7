import type { AnchorRecord } from "../freshness/anchor-record.ts";
import { markHits, searchedTopK } from "../freshness/mark-hits.ts";
import type { MarkRecords } from "../freshness/mark-records.ts";
import { type WithCodePath, withHead } from "../model/anchor.ts";
import type { DamagedRecord } from "../model/damaged-record.ts";
import { CairnError } from "../model/errors.ts";
import { idempotencyKey } from "../model/idempotency.ts";
import { SHARED_PROJECT_ID } from "../model/ids.ts";
import { KNOWLEDGE_TEXTS, type Knowledge, type KnowledgeContent, type KnowledgeKind, knowledgeHash } from "../model/knowledge.ts";
import { type RecordScope, resolveDatabase } from "../model/record-scope.ts";
import type { DeletedQuery } from "../ports/deletable-records.ts";
import type { Embedders } from "../ports/embedders.ts";
import type { KnowledgeFilter, KnowledgeStore } from "../ports/knowledge-store.ts";
import type { Storage } from "../ports/storage.ts";
import { assertWhole } from "../recall/assert-whole.ts";
import type { Backfiller } from "../recall/backfiller.ts";
import { type Deletion, type DeletionRules, deleteRecord, importDeleted, purgeRecord, restoreRecord } from "../recall/deletion.ts";
import { type Collection, importNew, storeEmbedded } from "../recall/embed-records.ts";
import { readFirst } from "../recall/read-first.ts";
import { decodeCursor, nextCursor } from "../text/cursor.ts";
import { knowledgeText } from "../text/knowledge-text.ts";
import { type Redact, type RedactedField, redactFields } from "../text/redact.ts";
import { fitKnowledge } from "./fit.ts";
import { type ImportKnowledge, type ImportOptions, type ImportResult, importKnowledge } from "./import.ts";
import { type ImportedRecords, readRecords } from "./import-records.ts";
import { type KnowledgeAnswer, type KnowledgeHit, type SearchKnowledge, searchScopes } from "./search.ts";

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

/** The content of a new knowledge record. */
export interface SaveKnowledge extends RecordScope, WithCodePath {
  /** Default: generated. */
  readonly id?: string | undefined;
  /** Default: a skill. */
  readonly kind?: KnowledgeKind | undefined;
  readonly category?: string | undefined;
  readonly subcategory?: string | undefined;
  readonly question: string;
  readonly answer: string;
  /** The code that it depends on, such as `src/a.ts#parse`. Default: what its texts name. */
  readonly anchors?: readonly string[] | undefined;
  /** Ids of records that this one replaces. */
  readonly supersedes?: readonly string[] | undefined;
  /** Identifies the call: repeated with the same key within 24 hours, it returns the first record instead of saving another. */
  readonly idempotencyKey?: string | undefined;
}

export interface UpdateKnowledge
  extends RecordScope,
    WithCodePath,
    Partial<{ [Field in keyof KnowledgeContent]: KnowledgeContent[Field] | undefined }> {
  readonly id: string;
  readonly anchors?: readonly string[] | undefined;
  readonly supersedes?: readonly string[] | undefined;
}

export interface KnowledgeRef extends RecordScope {
  readonly id: string;
}

export interface ListKnowledge extends RecordScope, KnowledgeFilter, WithCodePath {
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
  /** Approximate size of the answer in tokens: long texts are cut first, then the page ends earlier. */
  readonly maxTokens?: number | undefined;
  /** Lists deleted records that can be restored, the latest deletion first. Cannot be combined with filters. */
  readonly deleted?: boolean | undefined;
}

/** A record in a list; `deletedAt` is present if it is deleted. */
export interface ListedKnowledge extends Knowledge {
  readonly deletedAt?: string | undefined;
}

export interface KnowledgeList {
  readonly records: readonly ListedKnowledge[];
  /** Records within the page that are damaged and were skipped. They count in `total`. */
  readonly damaged: readonly DamagedRecord[];
  readonly total: number;
  readonly nextCursor?: string | undefined;
  /** Records shortened to fit into `maxTokens`. */
  readonly shortened: number;
}

/** A report about one use. */
export interface KnowledgeFeedback {
  /** Required unless the record is outdated. */
  readonly success?: boolean | undefined;
  /** The record no longer matches the facts: it ranks lower until it is edited. */
  readonly outdated?: boolean | undefined;
  /** Identifies the report: repeated with the same key within 24 hours, it counts once. */
  readonly idempotencyKey?: string | undefined;
}

/** A record that was just stored. */
export interface SavedKnowledge extends Knowledge {
  /** False until the record has a vector; keyword search finds it already. */
  readonly embedded: boolean;
  /** Secrets removed before it was stored. */
  readonly redacted: readonly RedactedField[];
}

/** How much of the shared knowledge semantic search covers. */
export interface KnowledgeReadiness {
  readonly records: number;
  readonly vectors: number;
  readonly ready: boolean;
}

/** Skills, remediations, troubleshooting steps and FAQs, per project and shared by all projects. */
export interface KnowledgeBase {
  save(input: SaveKnowledge, options?: CallOptions): Promise<SavedKnowledge>;
  search(input: SearchKnowledge, options?: CallOptions): Promise<KnowledgeAnswer>;
  get(input: KnowledgeRef & WithCodePath): Promise<Knowledge>;
  list(input: ListKnowledge): Promise<KnowledgeList>;
  /** Changes the fields that are present, and anchors the record again; the counts stay. A superseded record stands for itself again. */
  update(input: UpdateKnowledge, options?: CallOptions): Promise<SavedKnowledge>;
  /** Deletes a record: it leaves lists and searches, and `restore` undoes it until its retention ends. */
  delete(input: KnowledgeRef): Promise<Deletion>;
  /** Undoes a deletion. A record that is not deleted stays as it is. Raises `not_found` after a purge. */
  restore(input: KnowledgeRef, options?: CallOptions): Promise<SavedKnowledge>;
  /** Erases a record at once, deleted or not, also from the files on disk. */
  purge(input: KnowledgeRef): Promise<{ readonly purged: true }>;
  /** Counts one use, whether it helped, and whether the record is outdated. */
  feedback(input: KnowledgeRef & KnowledgeFeedback): Promise<Knowledge>;
  /** Makes the records of one source equal to a file's content. Embeds only changed texts. */
  import(input: ImportKnowledge, options?: ImportOptions): Promise<ImportResult>;
  /** Stores records of another Cairn database with their counts. Existing ids are skipped. */
  importRecords(
    input: { readonly database: string; readonly records: readonly unknown[] },
    options?: CallOptions,
  ): Promise<ImportedRecords>;
  readiness(): Promise<KnowledgeReadiness>;
}

export interface KnowledgeDeps extends DeletionRules {
  readonly storage: Storage;
  readonly embedders: Embedders;
  readonly backfiller: Backfiller;
  readonly newId: () => string;
  /** Removes secrets from everything that is stored or embedded. */
  readonly redact: Redact;
  readonly anchorRecord: AnchorRecord;
  readonly markRecords: MarkRecords;
}

/** Attempts to update a record that others update at the same time. */
const UPDATE_ATTEMPTS = 20;

export function knowledge({
  storage,
  embedders,
  backfiller,
  now,
  newId,
  redact,
  anchorRecord,
  markRecords,
  deletedDays,
}: KnowledgeDeps): KnowledgeBase {
  const find = async (place: RecordScope): Promise<KnowledgeStore | undefined> => (await storage.find(resolveDatabase(place)))?.knowledge;
  const missing = (id: string) =>
    new CairnError("not_found", `No knowledge ${JSON.stringify(id)} in this scope. Use knowledge_list, or try the other scope.`);

  const deps = { embedders, backfiller, redact };
  const collectionOf = (database: string, { embeddings }: KnowledgeStore): Collection => ({ name: "knowledge", database, embeddings });

  const anchorsOf = (projectPath: string | undefined, { question, answer }: KnowledgeContent, given: readonly string[] | undefined) =>
    given?.length === 0 ? [] : anchorRecord({ projectPath, given, texts: [question, answer] });

  /** Returns the project whose code index the records of a scope refer to. */
  const codeOf = ({ codePath, ...place }: RecordScope & WithCodePath) => {
    const database = resolveDatabase(place);
    return database === SHARED_PROJECT_ID ? undefined : (codePath ?? database);
  };

  async function assertExist(store: KnowledgeStore, ids: readonly string[]): Promise<void> {
    const { records } = await store.getMany(ids);
    const known = new Set(records.map(({ id }) => id));
    const unknown = ids.find((id) => !known.has(id));
    if (unknown !== undefined) throw missing(unknown);
  }

  return {
    async save(input, { signal } = {}) {
      const {
        id = newId(),
        kind = "skill",
        category = "",
        subcategory = "",
        question,
        answer,
        anchors: given,
        supersedes,
        idempotencyKey: key,
        codePath,
        ...place
      } = input;
      const database = resolveDatabase(place);
      const { fields: content, redacted } = redactFields({ kind, category, subcategory, question, answer }, KNOWLEDGE_TEXTS, redact);
      const { knowledge: store } = await storage.create(database);
      const at = now();
      const once = key === undefined ? undefined : idempotencyKey("knowledge_save", key, at);
      const first = once && (await readFirst(store, once));
      if (first) return { ...first, redacted };
      if (supersedes) await assertExist(store, supersedes);
      const anchors = await anchorsOf(codeOf({ ...place, codePath }), content, given);
      const fresh = {
        successes: 0,
        uses: 0,
        outdated: 0,
        source: "",
        anchors,
        supersededBy: "",
        createdAt: at,
        updatedAt: at,
        createdOrder: at,
        revision: 1,
      };
      const record: Knowledge = { id, ...content, contentHash: knowledgeHash(content), ...fresh };
      const write: Parameters<typeof storeEmbedded>[3] = (vectors) => store.put(record, vectors, { savedAt: at, supersedes, once });
      const embedded = await storeEmbedded(deps, collectionOf(database, store), knowledgeText(record), write, signal);
      if (embedded !== undefined) return { ...record, embedded, redacted };
      const concurrent = once && (await readFirst(store, once));
      if (concurrent) return { ...concurrent, redacted };
      throw new CairnError("conflict", `Knowledge ${JSON.stringify(id)} exists already. Update it, or save under another id.`);
    },

    async importRecords({ database, records: input }, { signal } = {}) {
      const { records, deleted, problems } = readRecords(input, redact, now());
      if (records.length + deleted.length === 0) return { imported: 0, present: 0, problems };
      const { knowledge: store } = await storage.create(database);
      const stored = await importDeleted(store, deleted, signal);
      const counts = await importNew(deps, collectionOf(database, store), {
        records,
        getMany: (ids) => store.getMany(ids),
        textOf: knowledgeText,
        put: (record, vectors) => store.put(record, vectors),
        signal,
      });
      return { imported: counts.imported + stored.imported, present: counts.present + stored.present, problems };
    },

    async search({ freshOnly, codePath, ...input }, { signal } = {}) {
      const { projectPath, topK } = input;
      const answer = await searchScopes(storage, deps, { ...input, topK: searchedTopK({ topK, freshOnly }) }, signal);
      const projectOf = ({ scope }: KnowledgeHit) => (scope === "project" ? (codePath ?? projectPath) : undefined);
      return { ...answer, hits: await markHits(markRecords, answer.hits, { projectOf, topK, freshOnly }) };
    },

    async get({ id, codePath, ...place }) {
      const record = await (await find(place))?.get(id);
      if (!record) throw missing(id);
      return (await markRecords(codeOf({ ...place, codePath }), [record]))[0]!;
    },

    async list(input) {
      const { projectPath, scope, limit = 10, cursor, deleted = false, maxTokens = Number.POSITIVE_INFINITY, codePath, ...filter } = input;
      if (deleted && Object.values(filter).some((value) => value !== undefined))
        throw new CairnError("invalid_input", "deleted: cannot be combined with kind, category, subcategory and source.");
      const order = deleted ? "deleted knowledge" : "knowledge";
      const after = cursor === undefined ? undefined : decodeCursor(cursor, order);
      const store = await find({ projectPath, scope });
      if (!store) return { records: [], damaged: [], total: 0, shortened: 0 };
      const source = filter.source === undefined ? {} : { source: redact(filter.source).text }; // as it was stored
      const page = deleted
        ? await listDeleted(store, limit + 1, after)
        : await store.list({ filter: { ...filter, ...source }, limit: limit + 1, after });
      const marked = await markRecords<ListedKnowledge>(codeOf({ projectPath, scope, codePath }), page.records.slice(0, limit));
      const { records: shown, shortened } = fitKnowledge(marked, maxTokens);
      const next = nextCursor<ListedKnowledge>(order, {
        ...{ read: page.records, shown },
        orderOf: ({ deletedAt, createdOrder }) => deletedAt ?? createdOrder,
      });
      return { records: shown, damaged: page.damaged, total: page.total, shortened, nextCursor: next };
    },

    async update({ id, projectPath, scope, codePath, anchors: given, supersedes, ...changes }, { signal } = {}) {
      assertWhole("answer", changes.answer);
      const database = resolveDatabase({ projectPath, scope });
      const store = (await storage.find(database))?.knowledge;
      if (!store) throw missing(id);
      const { fields: content, redacted } = redactFields(changes, KNOWLEDGE_TEXTS, redact);
      const fields = Object.fromEntries(Object.entries(content).filter(([, value]) => value !== undefined)) as Partial<KnowledgeContent>;
      if (supersedes) await assertExist(store, supersedes);
      for (let attempt = 0; attempt < UPDATE_ATTEMPTS; attempt++) {
        const before = await store.get(id);
        if (!before) throw missing(id);
        const edited = { ...before, ...fields };
        const anchors = withHead(await anchorsOf(codeOf({ projectPath, scope, codePath }), edited, given), given ? [] : before.anchors);
        const changed = { contentHash: knowledgeHash(edited), updatedAt: now(), revision: before.revision + 1 };
        const after: Knowledge = { ...edited, anchors, supersededBy: "", outdated: 0, ...changed };
        const sameText = knowledgeText(before) === knowledgeText(after);
        const write: Parameters<typeof storeEmbedded>[3] = (vectors) => store.replace(after, vectors, { supersedes });
        const embedded = sameText
          ? (await store.replace(after, undefined, { supersedes })) || undefined
          : await storeEmbedded(deps, collectionOf(database, store), knowledgeText(after), write, signal);
        // Feedback may have been counted since the record was read.
        if (embedded !== undefined) return { ...((await store.get(id)) ?? after), embedded, redacted };
      }
      throw new CairnError("conflict", "Other callers keep changing this record. Try again.", { retryAfterMs: 500 });
    },

    async delete({ id, ...place }) {
      return deleteRecord(await find(place), id, { now, deletedDays }, missing);
    },

    async restore({ id, ...place }, { signal } = {}) {
      const store = await find(place);
      if (!store) throw missing(id);
      const restored = await restoreRecord({
        ...{ store, id, missing },
        embed: (record, write) => storeEmbedded(deps, collectionOf(resolveDatabase(place), store), knowledgeText(record), write, signal),
      });
      return { ...restored, redacted: [] };
    },

    async purge({ id, ...place }) {
      return purgeRecord(await find(place), id, missing);
    },

    async feedback({ id, success, outdated = false, idempotencyKey: key, ...place }) {
      if (success === undefined && !outdated)
        throw new CairnError("invalid_input", "success: is required. Report whether the record helped, or outdated.");
      const record = await (await find(place))?.feedback(
        id,
        { success: success ?? false, outdated },
        key === undefined ? undefined : idempotencyKey("knowledge_feedback", key, now()),
      );
      if (!record) throw missing(id);
      return record;
    },

    import: (input, options = {}) => importKnowledge({ storage, embedders, backfiller, now, redact, anchorRecord }, input, options),

    async readiness() {
      const store = (await storage.find(SHARED_PROJECT_ID))?.knowledge;
      if (!store) return { records: 0, vectors: 0, ready: true };
      const current = (await store.embeddings.versions()).find(({ isCurrent }) => isCurrent);
      // Without a version, embedding was never enabled, and keyword search is all that is expected.
      if (!current) return { records: (await store.list({ limit: 1 })).total, vectors: 0, ready: true };
      const { records, vectors } = await store.embeddings.counts(current.versionId);
      return { records, vectors, ready: vectors >= records };
    },
  };
}

async function listDeleted(store: KnowledgeStore, limit: number, after: DeletedQuery["after"]) {
  const { records, damaged, total } = await store.listDeleted({ limit, after });
  return { records: records.map(({ record, deletedAt }): ListedKnowledge => ({ ...record, deletedAt })), damaged, total };
}
