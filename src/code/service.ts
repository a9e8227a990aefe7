import {
  type CodeChunk,
  type CodeCounts,
  type CodeOrphans,
  type DefinitionSite,
  type FileRename,
  isDamagedCodeIndex,
} from "../model/code-index.ts";
import { CairnError } from "../model/errors.ts";
import { assertProject } from "../model/ids.ts";
import type { IndexResult, IndexWork, ManifestPage, Rename } from "../model/index-job.ts";
import { LIMITS } from "../model/limits.ts";
import type { CodeFilter, CodeStore, Compacted, FileContent } from "../ports/code-store.ts";
import type { EmbeddingStore, EmbeddingVersion } from "../ports/embedding-store.ts";
import type { Storage } from "../ports/storage.ts";
import type { Backfiller } from "../recall/backfiller.ts";
import { mapInSlices } from "../scheduling/map-in-slices.ts";
import { globMatcher } from "../text/glob.ts";
import type { Redact } from "../text/redact.ts";
import { type EmbedPendingOptions, embedPending } from "./embed-pending.ts";
import { type Excerpt, excerpt, wholeDefinition } from "./excerpt.ts";
import {
  assertBatch,
  type BatchResult,
  type HashOptions,
  type IndexDeps,
  indexFiles,
  prepareFile,
  type SourceFile,
  type VectorOptions,
} from "./index-batch.ts";
import { type CodeJobs, codeJobs } from "./jobs.ts";
import { removeFiles, removeMissing } from "./manifest.ts";
import { type CodeAnswer, type CodeSearch, searchCode } from "./search.ts";
import { type SimilarQuery, similarCode } from "./similar.ts";
import { type Callers, findCallers, findImpact, type Impact } from "./structure/call-graph.ts";
import { type Callees, findCallees } from "./structure/find-callees.ts";
import { findUsages, type Usages } from "./structure/find-usages.ts";
import { type GrepAnswer, type GrepQuery, grep } from "./structure/grep.ts";
import { readSymbolPath } from "./structure/symbol-path.ts";

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

interface InProject {
  readonly projectPath: string;
}

interface OfSymbol {
  /** `bar`, `Foo.bar` or `Foo::bar`. */
  readonly symbol: string;
  readonly limit?: number | undefined;
}

export interface CodeContext extends Excerpt {
  readonly path: string;
  readonly language: string;
  readonly contentHash: string;
  readonly indexedAt: string;
}

export interface CodeStats extends CodeCounts {
  readonly embeddings: readonly (EmbeddingVersion & { readonly vectors: number })[];
}

/** The code index of projects. Callers send content; the service reads no files. */
export interface Code extends CodeJobs {
  /** Indexes a batch of files. Each file is committed atomically; a renamed file together with the removal of its old path. */
  indexBatch(
    batch: InProject & { readonly files: readonly SourceFile[]; readonly renames?: readonly Rename[] | undefined },
    options?: CallOptions & HashOptions & VectorOptions,
  ): Promise<BatchResult>;
  /** Adds the vectors of chunks that were indexed with `vectors: "later"`, and returns their number. It may be repeated. */
  embedPending(of: InProject, options?: EmbedPendingOptions): Promise<{ readonly embedded: number }>;
  /** Validates a batch, removes secrets and returns work for a queue. */
  prepare(
    batch: InProject & { readonly files: readonly SourceFile[]; readonly renames?: readonly Rename[] | undefined },
    options?: HashOptions,
  ): Promise<IndexWork>;
  /** Performs queued work: a batch, or a page of a manifest. */
  perform(work: IndexWork, options?: CallOptions & VectorOptions): Promise<IndexResult>;
  /** Completes a full index run: removes indexed files that are missing from the manifest, within the range of its page. */
  finish(end: InProject & ManifestPage): Promise<{ readonly removed: readonly string[]; readonly renamed: readonly FileRename[] }>;
  /**
   * Creates the index of a project from that of another one with the same files, such as another clone, and returns the number of files.
   * Takes over only files that `list` returns with the same path and content. For a caller that owns all projects of the storage.
   */
  seed(of: InProject & SeedFiles): Promise<{ readonly files: number }>;
  /** Returns the content hash of each of these paths that is indexed without problems. */
  hashes(of: InProject & { readonly paths: readonly string[] }): Promise<Readonly<Record<string, string>>>;
  search(query: InProject & Omit<CodeSearch, "topK"> & { readonly topK?: number | undefined }, options?: CallOptions): Promise<CodeAnswer>;
  /** Finds code that resembles a text or the chunk at a line of a file. */
  similar(query: InProject & SimilarQuery, options?: CallOptions): Promise<CodeAnswer>;
  /** Returns exactly, by syntax, where a symbol is defined and referenced. `Foo.bar` means the `bar` of `Foo`. */
  usages(of: InProject & CodeFilter & OfSymbol): Promise<Usages>;
  /** Returns the definitions that use a symbol, by syntax. */
  callers(of: InProject & Omit<CodeFilter, "kinds"> & OfSymbol): Promise<Callers>;
  /** Returns the symbols of the index that a definition uses, by syntax. */
  callees(of: InProject & OfSymbol & { readonly glob?: string | undefined }): Promise<Callees>;
  /** Returns the definitions that a change of a symbol can affect: its callers, their callers, and so on, by syntax. */
  impact(
    of: InProject & Omit<CodeFilter, "kinds"> & OfSymbol & { readonly depth?: number | undefined },
    options?: CallOptions,
  ): Promise<Impact>;
  /** Searches the indexed texts for a regular expression (RE2) or an exact text, line by line. */
  grep(query: InProject & Omit<GrepQuery, "limit"> & { readonly limit?: number | undefined }, options?: CallOptions): Promise<GrepAnswer>;
  /** Returns lines of a file, or the whole definition of a symbol in each file that defines it. */
  context(
    of: InProject &
      (
        | { readonly path: string; readonly startLine?: number | undefined; readonly endLine?: number | undefined }
        | { readonly symbol: string; readonly glob?: string | undefined; readonly limit?: number | undefined }
      ),
  ): Promise<readonly CodeContext[]>;
  stats(of: InProject): Promise<CodeStats>;
  /** Removes the files that match the glob, or all, from the index. */
  clean(what: InProject & { readonly glob?: string | undefined }): Promise<{ readonly removed: number }>;
  /** Removes orphaned rows and old renames, optimises the full-text index and frees disk space. */
  compact(of: InProject): Promise<Compacted & { readonly orphans: CodeOrphans }>;
}

export interface SeedFiles {
  /** Some files of the project, which decide whether another index is worth a copy. */
  readonly sample: readonly FileContent[];
  /** Returns all files of the project. */
  readonly list: () => Promise<readonly FileContent[]>;
}

export interface CodeDeps extends IndexDeps {
  /** Keeps the number of lines. */
  readonly redact: Redact;
  readonly storage: Storage;
  readonly backfiller: Backfiller;
}

const KEEP_RENAMES = 1_000;
/** Limit of removed paths that a job reports; it counts all of them. */
const REPORTED_PATHS = 1_000;
const EMPTY: CodeAnswer = { hits: [], match: "none", degraded: [], omitted: 0 };
const NOTHING: CodeStats = {
  ...{ files: 0, chunks: 0, definitions: 0, references: 0, bytes: 0, renames: 0, generation: 0, languages: [] },
  embeddings: [],
};

export function code({ storage, backfiller, redact, ...deps }: CodeDeps): Code {
  const { embedders, now } = deps;
  async function find(projectPath: string): Promise<CodeStore | undefined> {
    assertProject(projectPath);
    return (await storage.find(projectPath))?.code;
  }
  async function create(projectPath: string): Promise<CodeStore> {
    assertProject(projectPath);
    return (await storage.create(projectPath)).code;
  }
  const jobs = codeJobs({ find, create, now });
  const searching = (projectPath: string) => ({ embedders, backfiller: jobAwareBackfill(backfiller, jobs, projectPath), redact });
  const reconciled = new Set<string>();

  /** Returns the store for writing. Reconciles the index on the first write of the process, in case another program or a disk error changed it. */
  async function writable(projectPath: string, { vectors }: VectorOptions = {}): Promise<CodeStore> {
    const store = await create(projectPath);
    if (!reconciled.has(projectPath)) {
      await retryOnDamagedIndex(store, () => store.reconcile());
      reconciled.add(projectPath);
      // An earlier process may have been killed before it embedded every chunk. A caller of `embedPending` embeds these chunks as well.
      if (vectors !== "later") backfiller.schedule(`code ${projectPath}`, store.embeddings);
    }
    return store;
  }

  /** Runs a part of an index run. If the index is damaged, deletes it and runs the part again on an empty index. */
  async function retryOnDamagedIndex<T>(store: CodeStore, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!isDamagedCodeIndex(error)) throw error;
      await store.dropDamaged();
      return work();
    }
  }

  const prepare: Code["prepare"] = async ({ projectPath, files, renames = [] }, options) => {
    assertBatch(files, renames);
    return { kind: "files", projectPath, files: await mapInSlices(files, (file) => prepareFile(file, redact, options)), renames };
  };

  const finish: Code["finish"] = async ({ projectPath, ...page }) => {
    if (page.manifest.length === 0)
      throw new CairnError("invalid_input", "manifest: an empty manifest would remove every file. Clean the index instead.");
    const store = await find(projectPath);
    return store ? retryOnDamagedIndex(store, () => removeMissing(store, page, now())) : { removed: [], renamed: [] };
  };

  const perform: Code["perform"] = async (work, options = {}) => {
    if (work.kind === "manifest") {
      const { removed, renamed } = await finish(work);
      const paths = [...removed, ...renamed.map(({ oldPath }) => oldPath)];
      return { files: [], embeddedTexts: 0, removed: paths.length, removedPaths: paths.slice(0, REPORTED_PATHS), renamed: renamed.length };
    }
    const store = await writable(work.projectPath, options);
    const result = await retryOnDamagedIndex(store, () => indexFiles(store, deps, work, options));
    if (result.notEmbedded !== undefined) backfiller.schedule(`code ${work.projectPath}`, store.embeddings);
    return { ...result, removed: 0, removedPaths: [], renamed: 0 };
  };

  return {
    ...jobs,
    prepare,
    perform,
    finish,
    async indexBatch(batch, options) {
      const { files, embeddedTexts, notEmbedded } = await perform(await prepare(batch, options), options);
      return { files, embeddedTexts, notEmbedded };
    },

    async embedPending({ projectPath }, options) {
      const store = await find(projectPath);
      if (!store) return { embedded: 0 };
      const { embedded, failed } = await embedPending(store, deps, options);
      if (failed > 0) backfiller.schedule(`code ${projectPath}`, store.embeddings);
      return { embedded };
    },

    async seed({ projectPath, sample, list }) {
      const store = await create(projectPath);
      return { files: (await store.seed?.(sample, list)) ?? 0 };
    },

    async hashes({ projectPath, paths }) {
      const store = await find(projectPath);
      const files = store ? await retryOnDamagedIndex(store, () => store.filesAt(paths)) : [];
      return Object.fromEntries(files.filter(({ notice }) => notice === undefined).map(({ path, contentHash }) => [path, contentHash]));
    },

    async search({ projectPath, topK = LIMITS.listDefault, ...query }, { signal } = {}) {
      const store = await find(projectPath);
      return store ? searchCode(searching(projectPath), { projectPath, store }, { ...query, topK }, signal) : EMPTY;
    },

    async similar({ projectPath, ...query }, { signal } = {}) {
      const store = await find(projectPath);
      return store ? similarCode(searching(projectPath), { projectPath, store }, query, signal) : EMPTY;
    },

    async usages({ projectPath, symbol, limit = LIMITS.listMax, ...filter }) {
      const store = await find(projectPath);
      return store
        ? findUsages(store, symbol, filter, limit)
        : { definitions: [], references: [], totalReferences: 0, excluded: 0, ownerUnknown: false };
    },

    async callers({ projectPath, symbol, limit = LIMITS.listMax, ...filter }) {
      const store = await find(projectPath);
      const none = { callers: [], definitions: 0, excluded: 0, ownerUnknown: false, truncated: false };
      return store ? findCallers(store, readSymbolPath(symbol), filter, limit) : none;
    },

    async callees({ projectPath, symbol, glob, limit = LIMITS.listMax }) {
      const store = await find(projectPath);
      return store ? findCallees(store, readSymbolPath(symbol), glob, limit) : { definitions: [], callees: [], truncated: false };
    },

    async impact({ projectPath, symbol, depth = 3, limit = LIMITS.listMax, ...filter }, { signal } = {}) {
      const store = await find(projectPath);
      const none = { affected: [], notFollowed: [], definitions: 0, truncated: false };
      return store ? findImpact(store, readSymbolPath(symbol), { depth, limit, filter, signal }) : none;
    },

    async grep({ projectPath, limit = LIMITS.listMax, ...query }, { signal } = {}) {
      const store = await find(projectPath);
      const none = { matches: [], complete: true, reasons: [], searchedFiles: 0, candidateFiles: 0 };
      const time = { now: () => performance.now(), timeLimitMs: LIMITS.codeGrepMs };
      return store ? grep(store, { ...query, limit }, time, signal) : none;
    },

    async context({ projectPath, ...of }) {
      const store = await find(projectPath);
      if (!store) return [];
      if ("path" in of) {
        const chunks = await store.chunksOf(of.path);
        if (chunks.length === 0)
          throw new CairnError(
            "not_found",
            `${JSON.stringify(of.path)} is not in the index. Find it with code_search, or give \`symbol\` for a definition.`,
          );
        const lines = excerpt(chunks, of.startLine ?? 1, of.endLine ?? Number.MAX_SAFE_INTEGER);
        if (!lines) throw new CairnError("not_found", `${of.path} has ${chunks.at(-1)!.endLine} lines.`);
        return [toContext(chunks[0]!, lines)];
      }
      const definitions = await store.definitions([of.symbol], { glob: of.glob }, of.limit ?? LIMITS.listDefault);
      return (await mapInOrder(definitions, (site) => definitionOf(store, site))).flat();
    },

    async stats({ projectPath }) {
      const store = await find(projectPath);
      if (!store) return NOTHING;
      const versions = await store.embeddings.versions();
      const embeddings = await mapInOrder(versions, async (version) => ({
        ...version,
        vectors: (await store.embeddings.counts(version.versionId)).vectors,
      }));
      return { ...(await store.counts()), embeddings };
    },

    async clean({ projectPath, glob }) {
      const matches = glob === undefined ? () => true : globMatcher(glob);
      const store = await find(projectPath);
      if (!store) return { removed: 0 };
      const removes = (await mapInSlices(await store.files(), (file) => (matches(file.path) ? [file] : []))).flat();
      return { removed: (await removeFiles(store, removes, now())).size };
    },

    async compact({ projectPath }) {
      const store = await find(projectPath);
      if (!store) return { orphans: { rows: 0, terms: 0, vectors: 0 }, forgottenRenames: 0, freedBytes: 0 };
      return { orphans: await store.reconcile(), ...(await store.compact(KEEP_RENAMES)) };
    },
  };
}

/**
 * Leaves the chunks without a vector to the index job that runs, in whatever process: it embeds them at its end, in threads. A pass that
 * has begun ends with its next batch. A search after the job requests another pass for what is left.
 */
function jobAwareBackfill(backfiller: Backfiller, { jobs }: Pick<CodeJobs, "jobs">, projectPath: string): Backfiller {
  const isRunning = async () => (await jobs({ projectPath })).some(({ status, isSilent }) => status === "running" && !isSilent);
  const whileIdle = (embeddings: EmbeddingStore): EmbeddingStore => ({
    ...embeddings,
    versions: async () => ((await isRunning()) ? [] : embeddings.versions()),
    missing: async (...page) => ((await isRunning()) ? [] : embeddings.missing(...page)),
  });
  return {
    ...backfiller,
    schedule: (collection, embeddings, options) => backfiller.schedule(collection, whileIdle(embeddings), options),
    scheduleOnce: (collection, embeddings) => backfiller.scheduleOnce(collection, whileIdle(embeddings)),
  };
}

async function definitionOf(store: CodeStore, { path, chunkId }: DefinitionSite): Promise<CodeContext[]> {
  const chunks = await store.chunksOf(path);
  const chunk = chunks.find(({ id }) => id === chunkId);
  if (!chunk) return []; // the file was indexed again meanwhile
  const parts = wholeDefinition(chunks, chunk);
  const lines = excerpt(chunks, parts[0]!.startLine, parts.at(-1)!.endLine);
  return lines ? [toContext(chunk, lines)] : [];
}

function toContext({ path, language, contentHash, indexedAt }: CodeChunk, lines: Excerpt): CodeContext {
  return { path, ...lines, language, contentHash, indexedAt };
}

async function mapInOrder<In, Out>(items: readonly In[], work: (item: In) => Promise<Out>): Promise<Out[]> {
  const done: Out[] = [];
  for (const item of items) done.push(await work(item));
  return done;
}
