import type { DamagedRecord } from "../model/damaged-record.ts";
import { CairnError } from "../model/errors.ts";
import { type Clock, SHARED_PROJECT_ID } from "../model/ids.ts";
import { KNOWLEDGE_TEXTS, type Knowledge, type KnowledgeContent, type KnowledgeKind, knowledgeHash } from "../model/knowledge.ts";
import { type RecordScope, resolveDatabase } from "../model/record-scope.ts";
import type { Embedders } from "../ports/embedders.ts";
import type { KnowledgeFilter, KnowledgeStore } from "../ports/knowledge-store.ts";
import type { Storage } from "../ports/storage.ts";
import type { Backfiller } from "../recall/backfiller.ts";
import { type Collection, importNew, storeEmbedded } from "../recall/embed-records.ts";
import { decodeCursor, nextCursor } from "../text/cursor.ts";
import { knowledgeText } from "../text/knowledge-text.ts";
import { type Redact, type RedactedField, redactFields } from "../text/redact.ts";
import { fitKnowledge } from "./fit.ts";
import { type ImportKnowledge, type ImportOptions, type ImportResult, importKnowledge } from "./import.ts";
import { type Restored, readRestored } from "./restore.ts";
import { type KnowledgeAnswer, type SearchKnowledge, searchScopes } from "./search.ts";

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

/** The content of a new knowledge record. */
export interface SaveKnowledge extends RecordScope {
  /** Default: generated. */
  readonly id?: string | undefined;
  /** Default: a skill. */
  readonly kind?: KnowledgeKind | undefined;
  readonly category?: string | undefined;
  readonly subcategory?: string | undefined;
  readonly question: string;
  readonly answer: string;
}

export interface UpdateKnowledge extends RecordScope, Partial<{ [Field in keyof KnowledgeContent]: KnowledgeContent[Field] | undefined }> {
  readonly id: string;
}

export interface KnowledgeRef extends RecordScope {
  readonly id: string;
}

export interface ListKnowledge extends RecordScope, KnowledgeFilter {
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
  /** Approximate size of the answer in tokens: long texts are cut first, then the page ends earlier. */
  readonly maxTokens?: number | undefined;
}

export interface KnowledgeList {
  readonly records: readonly Knowledge[];
  /** Records within the page that are damaged and were skipped. They count in `total`. */
  readonly damaged: readonly DamagedRecord[];
  readonly total: number;
  readonly nextCursor?: string | undefined;
  /** Records shortened to fit into `maxTokens`. */
  readonly shortened: number;
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
  get(input: KnowledgeRef): Promise<Knowledge>;
  list(input: ListKnowledge): Promise<KnowledgeList>;
  /** Changes the fields that are present; the counts stay. */
  update(input: UpdateKnowledge, options?: CallOptions): Promise<SavedKnowledge>;
  delete(input: KnowledgeRef): Promise<{ readonly deleted: boolean }>;
  /** Counts one use, and whether it helped. */
  feedback(input: KnowledgeRef & { readonly success: boolean }): Promise<Knowledge>;
  /** Makes the records of one source equal to a file's content. Embeds only changed texts. */
  import(input: ImportKnowledge, options?: ImportOptions): Promise<ImportResult>;
  /** Stores records of another Cairn database with their counts. Existing ids are skipped. */
  restore(input: { readonly database: string; readonly records: readonly unknown[] }, options?: CallOptions): Promise<Restored>;
  readiness(): Promise<KnowledgeReadiness>;
}

export interface KnowledgeDeps {
  readonly storage: Storage;
  readonly embedders: Embedders;
  readonly backfiller: Backfiller;
  readonly now: Clock;
  readonly newId: () => string;
  /** Removes secrets from everything that is stored or embedded. */
  readonly redact: Redact;
}

/** Attempts to update a record that others update at the same time. */
const UPDATE_ATTEMPTS = 20;

export function knowledge({ storage, embedders, backfiller, now, newId, redact }: KnowledgeDeps): KnowledgeBase {
  const find = async (place: RecordScope): Promise<KnowledgeStore | undefined> => (await storage.find(resolveDatabase(place)))?.knowledge;
  const missing = (id: string) =>
    new CairnError("not_found", `No knowledge ${JSON.stringify(id)} in this scope. Use knowledge_list, or try the other scope.`);

  const deps = { embedders, backfiller, redact };
  const collectionOf = (database: string, { embeddings }: KnowledgeStore): Collection => ({ name: "knowledge", database, embeddings });

  return {
    async save({ id = newId(), kind = "skill", category = "", subcategory = "", question, answer, ...place }, { signal } = {}) {
      const database = resolveDatabase(place);
      const { fields: content, redacted } = redactFields({ kind, category, subcategory, question, answer }, KNOWLEDGE_TEXTS, redact);
      const { knowledge: store } = await storage.create(database);
      const at = now();
      const fresh = { successes: 0, uses: 0, source: "", createdAt: at, updatedAt: at, createdOrder: at, revision: 1 };
      const record: Knowledge = { id, ...content, contentHash: knowledgeHash(content), ...fresh };
      const write: Parameters<typeof storeEmbedded>[3] = (vectors) => store.put(record, vectors, { savedAt: at });
      const embedded = await storeEmbedded(deps, collectionOf(database, store), knowledgeText(record), write, signal);
      if (embedded !== undefined) return { ...record, embedded, redacted };
      throw new CairnError("conflict", `Knowledge ${JSON.stringify(id)} exists already. Update it, or save under another id.`);
    },

    async restore({ database, records: input }, { signal } = {}) {
      const { records, problems } = readRestored(input, redact, now());
      if (records.length === 0) return { imported: 0, present: 0, problems };
      const { knowledge: store } = await storage.create(database);
      const counts = await importNew(deps, collectionOf(database, store), {
        records,
        getMany: (ids) => store.getMany(ids),
        textOf: knowledgeText,
        put: (record, vectors) => store.put(record, vectors),
        signal,
      });
      return { ...counts, problems };
    },

    search: (input, { signal } = {}) => searchScopes(storage, deps, input, signal),

    async get({ id, ...place }) {
      const record = await (await find(place))?.get(id);
      if (!record) throw missing(id);
      return record;
    },

    async list({ projectPath, scope, limit = 10, cursor, maxTokens = Number.POSITIVE_INFINITY, ...filter }) {
      const after = cursor === undefined ? undefined : decodeCursor(cursor, "knowledge");
      const store = await find({ projectPath, scope });
      if (!store) return { records: [], damaged: [], total: 0, shortened: 0 };
      const source = filter.source === undefined ? {} : { source: redact(filter.source).text }; // as it was stored
      const page = await store.list({ filter: { ...filter, ...source }, limit: limit + 1, after });
      const { records: shown, shortened } = fitKnowledge(page.records.slice(0, limit), maxTokens);
      const next = nextCursor("knowledge", { read: page.records, shown, orderOf: ({ createdOrder }) => createdOrder });
      return { records: shown, damaged: page.damaged, total: page.total, shortened, nextCursor: next };
    },

    async update({ id, projectPath, scope, ...changes }, { signal } = {}) {
      const database = resolveDatabase({ projectPath, scope });
      const store = (await storage.find(database))?.knowledge;
      if (!store) throw missing(id);
      const { fields: content, redacted } = redactFields(changes, KNOWLEDGE_TEXTS, redact);
      const fields = Object.fromEntries(Object.entries(content).filter(([, value]) => value !== undefined)) as Partial<KnowledgeContent>;
      for (let attempt = 0; attempt < UPDATE_ATTEMPTS; attempt++) {
        const before = await store.get(id);
        if (!before) throw missing(id);
        const edited = { ...before, ...fields };
        const after: Knowledge = { ...edited, contentHash: knowledgeHash(edited), updatedAt: now(), revision: before.revision + 1 };
        const sameText = knowledgeText(before) === knowledgeText(after);
        const write: Parameters<typeof storeEmbedded>[3] = (vectors) => store.replace(after, vectors);
        const embedded = sameText
          ? (await store.replace(after)) || undefined
          : await storeEmbedded(deps, collectionOf(database, store), knowledgeText(after), write, signal);
        // Feedback may have been counted since the record was read.
        if (embedded !== undefined) return { ...((await store.get(id)) ?? after), embedded, redacted };
      }
      throw new CairnError("conflict", "Other callers keep changing this record. Try again.", { retryAfterMs: 500 });
    },

    async delete({ id, ...place }) {
      return { deleted: (await (await find(place))?.delete(id)) ?? false };
    },

    async feedback({ id, success, ...place }) {
      const record = await (await find(place))?.feedback(id, success);
      if (!record) throw missing(id);
      return record;
    },

    import: (input, options = {}) => importKnowledge({ storage, embedders, backfiller, now, redact }, input, options),

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
