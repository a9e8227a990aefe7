import type { AnchorRecord } from "../freshness/anchor-record.ts";
import { type Anchor, type WithCodePath, withHead } from "../model/anchor.ts";
import { CairnError } from "../model/errors.ts";
import { type Clock, SHARED_PROJECT_ID } from "../model/ids.ts";
import { KNOWLEDGE_TEXTS, type Knowledge, type KnowledgeContent, knowledgeHash } from "../model/knowledge.ts";
import { orderTime } from "../model/record-order.ts";
import { type RecordScope, resolveDatabase } from "../model/record-scope.ts";
import type { Embedders } from "../ports/embedders.ts";
import type { VersionedVector } from "../ports/embedding-store.ts";
import type { KnowledgeMark, KnowledgeStore, KnowledgeWrite } from "../ports/knowledge-store.ts";
import type { Storage } from "../ports/storage.ts";
import type { Backfiller } from "../recall/backfiller.ts";
import { vectorsFor } from "../recall/embed-records.ts";
import { backfill } from "../recall/fill.ts";
import { mapInSlices } from "../scheduling/map-in-slices.ts";
import { knowledgeText } from "../text/knowledge-text.ts";
import { type Redact, redactFields } from "../text/redact.ts";
import { mayNameCode } from "../text/terms.ts";
import { type LabelledQuery, type Validation, validateSearch } from "./validate.ts";

export interface ImportRecord extends KnowledgeContent {
  readonly id: string;
  /** Original times, in ISO 8601. Default: the time of the import. */
  readonly createdAt?: string | undefined;
  readonly updatedAt?: string | undefined;
  /** The code that it depends on, such as `src/a.ts#parse`. Default: what its texts name. */
  readonly anchors?: readonly string[] | undefined;
}

/** The records of one import and how to apply them. */
export interface ImportKnowledge extends RecordScope, WithCodePath {
  /** Names the import, such as by its file. The source owns its records: the import deletes records that are gone from the file. */
  readonly source: string;
  readonly records: readonly ImportRecord[];
  /** Writes and embeds every record again. */
  readonly force?: boolean | undefined;
  /** Only reports what would change. */
  readonly dryRun?: boolean | undefined;
  /** Keeps records that are gone from the file. */
  readonly keepMissing?: boolean | undefined;
  /** Questions with the id of the right record. The import measures how often the search returns it first. */
  readonly labelled?: readonly LabelledQuery[] | undefined;
}

export interface ImportOptions {
  readonly signal?: AbortSignal | undefined;
  readonly progress?: ((done: number, total: number) => void) | undefined;
}

/** Counts the changes of one import. */
export interface ImportResult {
  readonly added: number;
  readonly changed: number;
  readonly removed: number;
  readonly unchanged: number;
  /** Texts that were embedded, and texts whose vector was reused. */
  readonly embeddingCalls: number;
  readonly embeddingCallsSaved: number;
  /** Records without a vector yet; keyword search finds them, and the backfill embeds them. */
  readonly embeddingPending: number;
  /** Secrets removed before anything was stored. */
  readonly redactedSecrets: number;
  readonly dryRun: boolean;
  readonly validation?: Validation | undefined;
}

interface ImportDeps {
  readonly storage: Storage;
  readonly embedders: Embedders;
  readonly backfiller: Backfiller;
  readonly now: Clock;
  readonly redact: Redact;
  readonly anchorRecord: AnchorRecord;
}

/** Texts per call of the embedder, and the milliseconds it may take. */
const BATCH = 32;
const BATCH_MS = 120_000;
/** Attempts to import while other callers change the same records. */
const ATTEMPTS = 5;

export async function importKnowledge(deps: ImportDeps, request: ImportKnowledge, options: ImportOptions): Promise<ImportResult> {
  const { storage, embedders, backfiller, now, redact, anchorRecord } = deps;
  const database = resolveDatabase(request);
  assertDistinct(request.records);
  const clean = await mapInSlices(request.records, (record) => redactFields(record, KNOWLEDGE_TEXTS, redact), options.signal);
  const redactedSecrets = clean.flatMap(({ redacted }) => redacted).reduce((sum, { count }) => sum + count, 0);
  const input = { ...request, source: redact(request.source).text, records: clean.map(({ fields }) => fields) };
  if (input.dryRun) {
    const store = (await storage.find(database))?.knowledge;
    const { counts } = compare(input, (await store?.marks()) ?? []);
    return {
      ...counts,
      embeddingCalls: 0,
      embeddingCallsSaved: 0,
      embeddingPending: 0,
      redactedSecrets,
      dryRun: true,
      ...(await validate(store)),
    };
  }
  const { knowledge: store } = await storage.create(database);
  const embed = embedOnce(store, embedders, options);
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const { add, replace, remove, counts } = compare(input, await store.marks());
    const stored = await store.getMany(replace.map(({ record }) => record.id));
    const before = new Map(stored.records.map((record) => [record.id, record]));
    const needsVector = ({ record }: Compared) => {
      const old = before.get(record.id);
      return input.force || !old || knowledgeText(old) !== knowledgeText(record);
    };
    const texts = [...add, ...replace.filter(needsVector)].map(({ record }) => knowledgeText(record));
    await embed(texts);
    const written = [...add, ...replace];
    const anchored = await mapInSlices(written, ({ record }) => anchorsOf(record, before.get(record.id)), options.signal);
    const anchors = new Map(written.map(({ record }, index) => [record.id, anchored[index]!]));
    const at = now();
    const write = (compared: Compared): KnowledgeWrite => ({
      record: toRecord(compared, before.get(compared.record.id), { source: input.source, anchors: anchors.get(compared.record.id)!, at }),
      vectors: needsVector(compared) ? embed.vectorsOf(knowledgeText(compared.record)) : undefined,
    });
    if ((await store.apply({ add: add.map(write), replace: replace.map(write), remove, savedAt: at })) === "changed meanwhile") continue;
    // Records that an earlier import left without a vector are embedded now, unless the provider is still unavailable.
    const late = embed.failed() > 0 ? { embedded: 0, failed: embed.failed() } : await backfill(store.embeddings, embedders, options);
    if (late.failed > 0) backfiller.schedule(`knowledge ${database}`, store.embeddings);
    return {
      ...counts,
      embeddingCalls: embed.calls() + late.embedded,
      embeddingCallsSaved: Math.max(0, input.records.length - texts.length - late.embedded),
      embeddingPending: late.failed,
      redactedSecrets,
      dryRun: false,
      ...(await validate(store)),
    };
  }
  throw new CairnError("conflict", "Nothing was imported: other callers keep changing the same records. Try again.", {
    retryAfterMs: 1_000,
  });

  /** Returns the anchors of a record that is written, as a save does. */
  async function anchorsOf({ question, answer, anchors: given }: ImportRecord, stored: Knowledge | undefined): Promise<readonly Anchor[]> {
    const projectPath = database === SHARED_PROJECT_ID ? undefined : (input.codePath ?? database);
    const texts = [question, answer];
    const named = given ? given.length > 0 : texts.some(mayNameCode);
    const found = named ? await anchorRecord({ projectPath, given, texts }) : [];
    return given ? found : withHead(found, stored?.anchors ?? []);
  }

  async function validate(store: KnowledgeStore | undefined): Promise<{ validation?: Validation }> {
    if (!input.labelled) return {};
    return { validation: await validateSearch(deps, store && { database, store }, input.labelled, options.signal) };
  }
}

interface Compared {
  readonly record: ImportRecord;
  readonly hash: string;
  readonly revision: number;
}

/** Compares the file with the stored records of its source. */
function compare({ records, source, force, keepMissing }: ImportKnowledge, marks: readonly KnowledgeMark[]) {
  const stored = new Map(marks.map((mark) => [mark.id, mark]));
  const foreign = records.filter(({ id }) => stored.has(id) && stored.get(id)!.source !== source);
  if (foreign.length > 0)
    throw new CairnError(
      "conflict",
      `Nothing was imported: ${foreign.length} ids belong to another source, such as ${JSON.stringify(foreign[0]!.id)} (${stored.get(foreign[0]!.id)!.source || "saved directly"}). Delete those records or use other ids.`,
      { details: { ids: foreign.slice(0, 20).map(({ id }) => id) } },
    );
  const compared = records.map((record) => ({ record, hash: knowledgeHash(record), revision: stored.get(record.id)?.revision ?? 0 }));
  const add = compared.filter(({ record }) => !stored.has(record.id));
  const old = compared.filter(({ record }) => stored.has(record.id));
  const changed = old.filter(({ record, hash }) => stored.get(record.id)!.contentHash !== hash);
  const inFile = new Set(records.map(({ id }) => id));
  const remove = keepMissing ? [] : marks.filter((mark) => mark.source === source && !inFile.has(mark.id));
  return {
    add,
    replace: force ? old : changed,
    remove,
    counts: { added: add.length, changed: changed.length, removed: remove.length, unchanged: old.length - changed.length },
  };
}

function toRecord(
  { record, hash, revision }: Compared,
  before: Knowledge | undefined,
  { source, anchors, at }: { readonly source: string; readonly anchors: readonly Anchor[]; readonly at: string },
): Knowledge {
  const { id, kind, category, subcategory, question, answer } = record;
  const original = record.createdAt === undefined ? at : new Date(record.createdAt).toISOString();
  const { successes = 0, uses = 0, createdAt = original, createdOrder = orderTime(original, at), supersededBy = "" } = before ?? {};
  const updatedAt = record.updatedAt === undefined ? at : new Date(record.updatedAt).toISOString();
  const content = { kind, category, subcategory, question, answer };
  const state = { successes, uses, outdated: 0, source, anchors, supersededBy };
  return { id, ...content, contentHash: hash, ...state, createdAt, updatedAt, createdOrder, revision: revision + 1 };
}

/** Embeds texts in batches and keeps the vectors, so that a second attempt embeds nothing again. */
function embedOnce(store: KnowledgeStore, embedders: Embedders, { signal, progress }: ImportOptions) {
  const known = new Map<string, readonly VersionedVector[]>();
  let calls = 0;
  let failed = 0;
  const embed = async (texts: readonly string[]): Promise<void> => {
    const wanted = [...new Set(texts)].filter((text) => !known.has(text));
    for (let start = 0; start < wanted.length; start += BATCH) {
      signal?.throwIfAborted();
      const batch = wanted.slice(start, start + BATCH);
      // After a failure the provider is not called for further batches.
      const { vectors, embedded } =
        failed > 0
          ? { vectors: batch.map(() => []), embedded: false }
          : await vectorsFor(store.embeddings, embedders, "knowledge", batch, { signal, timeoutMs: BATCH_MS });
      for (const [index, text] of batch.entries()) known.set(text, vectors[index]!);
      if (!embedded) failed += batch.length;
      else if (vectors.some((one) => one.length > 0)) calls += batch.length;
      progress?.(Math.min(start + BATCH, wanted.length), wanted.length);
    }
  };
  return Object.assign(embed, { vectorsOf: (text: string) => known.get(text) ?? [], calls: () => calls, failed: () => failed });
}

function assertDistinct(records: readonly ImportRecord[]): void {
  const seen = new Set<string>();
  for (const { id } of records) {
    if (seen.has(id)) throw new CairnError("invalid_input", `Nothing was imported: the id ${JSON.stringify(id)} is not unique.`);
    seen.add(id);
  }
}
