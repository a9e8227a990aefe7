import type { IndexedFile } from "../model/code-index.ts";
import { CairnError } from "../model/errors.ts";
import { sha256Hex } from "../model/ids.ts";
import type { FileOutcome, IndexResult, PreparedFile, RefusedFile, Rename } from "../model/index-job.ts";
import { LIMITS } from "../model/limits.ts";
import type { CodeStore, PackedFileWrite } from "../ports/code-store.ts";
import type { Embedder } from "../ports/embedder.ts";
import type { Embedders } from "../ports/embedders.ts";
import type { VersionedVector } from "../ports/embedding-store.ts";
import { allCoverCurrent, liveVersions, vectorsFor } from "../recall/embed-records.ts";
import { yieldToCalls } from "../scheduling/calls.ts";
import type { Redact } from "../text/redact.ts";
import { unstorable } from "../text/untrusted.ts";
import { languageOf } from "./chunking/language.ts";
import type { DerivedFile, ThreadVectors } from "./derive-file.ts";
import type { ParserPool } from "./parser-pool.ts";

export interface SourceFile {
  /** Relative to the project, with `/`. */
  readonly path: string;
  readonly content: string;
  /** SHA-256 of the content, if the sender knows it: a disagreement means that it was altered on the way. */
  readonly hash?: string | undefined;
  readonly language?: string | undefined;
}

export interface HashOptions {
  /** Uses the given hashes without computing them again: for a caller in this process that computed them from the same bytes. */
  readonly trustHashes?: boolean | undefined;
}

export interface VectorOptions {
  /**
   * `later` commits the chunks without vectors where threads can embed stored chunks: keyword and symbol search find them at once, and
   * `Code.embedPending` adds the vectors. Elsewhere, and by default, vectors are committed together with their chunks.
   */
  readonly vectors?: "later" | undefined;
}

export type BatchResult = Pick<IndexResult, "files" | "embeddedTexts" | "notEmbedded">;

export interface IndexDeps {
  readonly embedders: Embedders;
  readonly parsers: ParserPool;
  readonly now: () => string;
}

/** Milliseconds for the embeddings of a batch: a local model takes about 100 ms for a chunk, and a batch may have hundreds. */
const EMBED_MS = 120_000;

/** Indexes a batch of files in one commit. A file that cannot be indexed is reported and does not affect the others. */
export async function indexFiles(
  store: CodeStore,
  { embedders, parsers, now }: IndexDeps,
  { files, renames }: { readonly files: readonly (PreparedFile | RefusedFile)[]; readonly renames: readonly Rename[] },
  { signal, vectors }: VectorOptions & { readonly signal?: AbortSignal | undefined } = {},
): Promise<BatchResult> {
  const outcomes = new Map<string, FileOutcome>();
  const sound: PreparedFile[] = [];
  for (const file of files)
    if ("refused" in file) outcomes.set(file.path, { path: file.path, status: "failed", reason: file.refused });
    else sound.push(file);
  const fromOf = new Map(renames.map(({ from, to }) => [to, from]));
  const known = new Map((await store.filesAt([...sound.map(({ path }) => path), ...fromOf.values()])).map((file) => [file.path, file]));
  const unchangedRenames: { from: string; to: string; contentHash: string }[] = [];
  const removes: { path: string; contentHash: string; renamedTo: string }[] = [];
  const changed: PreparedFile[] = [];
  for (const file of sound) {
    const before = known.get(file.path);
    if (isSame(before, file)) {
      outcomes.set(file.path, { path: file.path, status: "unchanged" });
      continue;
    }
    const source = before ? undefined : known.get(fromOf.get(file.path) ?? "");
    if (source && isSame(source, file)) {
      unchangedRenames.push({ from: source.path, to: file.path, contentHash: file.contentHash });
      continue;
    }
    // Renamed and edited: the file is written again, and its unchanged chunks keep their vectors.
    if (source) removes.push({ path: source.path, contentHash: source.contentHash, renamedTo: file.path });
    changed.push(file);
  }

  const inThread = changed.length > 0 ? await modelForThreads(store, embedders) : undefined;
  const isLater = vectors === "later" && inThread !== undefined && store.unembedded !== undefined;
  const model = isLater ? "later" : inThread?.embedder.threadModel;
  const derived = await Promise.all(changed.map(async (file) => ({ file, derived: await parsers.derive(file, { signal, model }) })));
  const donors = await donorsOf(
    store,
    derived.filter(({ derived: one }) => typeof one.vectors === "object" && "texts" in one.vectors).map(({ file }) => file),
    known,
    fromOf,
  );
  const { writes, embeddedTexts, notEmbedded: failure } = await withVectors(store, embedders, { derived, donors, inThread }, signal);
  signal?.throwIfAborted();
  const hasChanges = unchangedRenames.length + removes.length + writes.length > 0;
  const batch = { at: now(), renames: unchangedRenames, removes, files: writes };
  const renamed = new Set(hasChanges ? (await store.commit(batch)).renamed : []);
  const stored = writes.flatMap(({ vectors }) => vectors);
  const covered = isLater || failure !== undefined || (await allCoverCurrent(store.embeddings, stored));
  const notEmbedded = covered ? failure : "another embedding model was made current meanwhile";
  for (const { to } of unchangedRenames)
    outcomes.set(
      to,
      renamed.has(to)
        ? { path: to, status: "renamed" }
        : { path: to, status: "failed", reason: "another process changed the file in the index meanwhile; send it again" },
    );
  for (const { file, derived: one } of derived)
    outcomes.set(file.path, {
      path: file.path,
      status: one.notice === undefined ? "indexed" : "partial",
      chunks: one.packed.outlines.length,
      ...(one.notice !== undefined && { reason: one.notice }),
      ...(file.redacted.length > 0 && { redacted: file.redacted }),
    });
  return { files: files.map(({ path }) => outcomes.get(path)!), embeddedTexts, notEmbedded };
}

/** Checks a file, hashes it and redacts its secrets. `redact` keeps the number of lines. */
export function prepareFile(
  { path, content, hash, language }: SourceFile,
  redact: Redact,
  { trustHashes = false }: HashOptions = {},
): PreparedFile | RefusedFile {
  yieldToCalls();
  const problem = pathProblem(path) ?? unstorable(content);
  if (problem) return { path, refused: problem };
  const bytes = Buffer.byteLength(content);
  if (bytes > LIMITS.codeFileBytes) return { path, refused: `has ${bytes} bytes; at most ${LIMITS.codeFileBytes} are indexed` };
  const contentHash = (trustHashes ? hash : undefined) ?? sha256Hex(content);
  if (hash !== undefined && hash.toLowerCase() !== contentHash)
    return { path, refused: "the content does not have the hash that was sent with it; read the file again" };
  const { text, found } = redact(content);
  return { path, content: text, contentHash, bytes, language: language ?? languageOf(path, content), redacted: found };
}

export function pathProblem(path: string): string | undefined {
  if (path === "" || Buffer.byteLength(path) > LIMITS.codePathBytes) return `the path must have 1 to ${LIMITS.codePathBytes} bytes`;
  const problem = unstorable(path);
  if (problem) return `the path ${problem}`;
  if (path.startsWith("/") || path.includes("\\") || /^[A-Za-z]:/.test(path))
    return "the path must be relative to the project, with / between folders";
  if (path.split("/").some((part) => part === "" || part === "." || part === "..")) return "the path must not have . or .. or empty parts";
  return undefined;
}

function isSame(known: IndexedFile | undefined, file: PreparedFile): boolean {
  return known?.contentHash === file.contentHash && known.language === file.language && known.notice === undefined;
}

/** A file with what was derived from it. */
interface Derived {
  readonly file: PreparedFile;
  readonly derived: DerivedFile;
}

/** The embedder whose model the threads open themselves, and the version that it serves. */
export interface InThread {
  readonly versionId: number;
  readonly embedder: Embedder;
}

/** Returns the model that embeds new chunks, if threads can open it. While another version is being filled, this thread embeds for both. */
export async function modelForThreads(store: CodeStore, embedders: Embedders): Promise<InThread | undefined> {
  const versions = await liveVersions(store.embeddings, embedders, "code");
  const [version] = versions;
  if (typeof versions === "string" || typeof version !== "object" || versions.length > 1) return undefined;
  const embedder = await embedders.serving(version);
  return embedder?.threadModel ? { versionId: version.versionId, embedder } : undefined;
}

/** Returns the file whose vectors each file may reuse: its previous version, the file it was renamed from, or one with the same content. */
async function donorsOf(
  store: CodeStore,
  changed: readonly PreparedFile[],
  known: ReadonlyMap<string, IndexedFile>,
  fromOf: ReadonlyMap<string, string>,
): Promise<ReadonlyMap<string, string>> {
  const own = (path: string) => [path, fromOf.get(path)].find((candidate) => candidate !== undefined && known.has(candidate));
  const strangers = changed.filter(({ path }) => own(path) === undefined);
  const twins = strangers.length > 0 ? await store.filesWith(strangers.map(({ contentHash }) => contentHash)) : [];
  return new Map(
    changed.flatMap((file) => {
      const twin = twins.find(({ contentHash, language }) => contentHash === file.contentHash && language === file.language)?.path;
      const donor = own(file.path) ?? twin;
      return donor === undefined ? [] : [[file.path, donor] as const];
    }),
  );
}

interface ToWrite {
  readonly derived: readonly Derived[];
  readonly donors: ReadonlyMap<string, string>;
  readonly inThread: InThread | undefined;
}

async function withVectors(
  store: CodeStore,
  embedders: Embedders,
  { derived, donors, inThread }: ToWrite,
  signal: AbortSignal | undefined,
) {
  const current = donors.size > 0 ? (await store.embeddings.versions()).find(({ isCurrent }) => isCurrent) : undefined;
  const reusable = new Map<string, readonly VersionedVector[]>();
  for (const [path, donor] of current ? donors : [])
    for (const [print, vectors] of await store.vectorsOf(donor))
      if (vectors.some(({ versionId }) => versionId === current?.versionId)) reusable.set(`${path}\n${print}`, vectors);

  const texts = new Map<string, number>();
  let embeddedTexts = 0;
  const plans = derived.map(({ file, derived: { vectors, packed } }): readonly (readonly VersionedVector[] | number)[] => {
    if (vectors === "later") return packed.outlines.map(() => []);
    if (!("texts" in vectors)) {
      const made = vectorsOfThread(vectors, inThread!.versionId);
      inThread!.embedder.countElsewhere?.(made.length, vectors.chars);
      embeddedTexts += made.length;
      return made;
    }
    return vectors.texts.map((text, index) => {
      yieldToCalls();
      const reused = reusable.get(`${file.path}\n${vectors.fingerprints[index]}`);
      if (reused) return reused;
      const place = texts.get(text) ?? texts.size;
      texts.set(text, place);
      return place;
    });
  });
  const wanted = [...texts.keys()];
  const made =
    wanted.length > 0
      ? await vectorsFor(store.embeddings, embedders, "code", wanted, { signal, timeoutMs: EMBED_MS })
      : { vectors: [], embedded: true, failure: undefined };
  const writes: PackedFileWrite[] = plans.map((plan, index) => ({
    ...factsOf(derived[index]!),
    vectors: plan.map((vectors) => (typeof vectors === "number" ? (made.vectors[vectors] ?? []) : vectors)),
  }));
  const notEmbedded = made.embedded ? undefined : (made.failure ?? "no embedding model");
  return { writes, embeddedTexts: embeddedTexts + wanted.length, notEmbedded };
}

function vectorsOfThread({ dimension, values }: ThreadVectors, versionId: number): VersionedVector[][] {
  return Array.from({ length: values.length / dimension }, (_, index) => [
    { versionId, vector: values.subarray(index * dimension, (index + 1) * dimension) },
  ]);
}

function factsOf({ file: { path, contentHash, bytes, language }, derived: { packed, notice } }: Derived) {
  const lines = packed.outlines.at(-1)?.endLine ?? 0;
  return { path, contentHash, language, bytes, lines, packed, ...(notice !== undefined && { notice }) };
}

/** Refuses a contradictory batch as a whole. */
export function assertBatch(files: readonly SourceFile[], renames: readonly Rename[]): void {
  if (files.length > LIMITS.codeBatchFiles) throw new CairnError("invalid_input", `files: at most ${LIMITS.codeBatchFiles} in one batch.`);
  const bytes = files.reduce((sum, { content }) => sum + Buffer.byteLength(content), 0);
  if (bytes > LIMITS.codeBatchBytes) throw new CairnError("invalid_input", `files: at most ${LIMITS.codeBatchBytes} bytes in one batch.`);
  const paths = new Set(files.map(({ path }) => path));
  if (paths.size < files.length) throw new CairnError("invalid_input", "files: a path is given twice.");
  const targets = new Set(renames.map(({ to }) => to));
  const sources = new Set(renames.map(({ from }) => from));
  if (targets.size < renames.length || sources.size < renames.length)
    throw new CairnError("invalid_input", "renames: a path is given twice.");
  for (const { from, to } of renames) {
    if (!paths.has(to)) throw new CairnError("invalid_input", `renames: ${JSON.stringify(to)} is not among the files of the batch.`);
    if (paths.has(from)) throw new CairnError("invalid_input", `renames: ${JSON.stringify(from)} is still among the files of the batch.`);
  }
}
