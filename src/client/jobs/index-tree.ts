import { setMaxListeners } from "node:events";
import type { SourceFile, VectorOptions } from "../../code/index-batch.ts";
import { asCairnError, CairnError } from "../../model/errors.ts";
import type { FileOutcome } from "../../model/index-job.ts";
import { LIMITS } from "../../model/limits.ts";
import type { FileContent } from "../../ports/code-store.ts";
import { slots } from "../../scheduling/concurrency.ts";
import type { HashCache } from "../files/hash-cache.ts";
import { readSource, type SourceText } from "../files/read-source.ts";
import { type OnFolder, type WalkedFile, walk } from "../files/walk.ts";
import type { IndexTarget } from "./index-target.ts";
import type { Tally } from "./tally.ts";

export interface IndexTreeOptions {
  /** The real path of the tree. */
  readonly root: string;
  readonly target: IndexTarget;
  readonly cache: HashCache;
  readonly tally: Tally;
  readonly signal: AbortSignal;
  /** True includes what the ignore rules exclude. */
  readonly includeIgnored?: boolean | undefined;
  readonly anywhere?: boolean | undefined;
  readonly batchFiles?: number | undefined;
  readonly batchBytes?: number | undefined;
  readonly onFolder?: OnFolder | undefined;
}

const BATCH_FILES = 10;
const BATCH_BYTES = 1_000_000;
/** Paths in one request for hashes. */
const HASHES_AT_ONCE = 1_000;
/** Files whose content decides whether the index of another project is worth a copy. */
const SAMPLE_FILES = 50;
/** New files from which vectors follow after all files are found by keyword: with fewer, a job ends before anybody could search. */
const VECTORS_LATER_FILES = 200;
/** Attempts per file before the job reports it as failed. */
const ATTEMPTS = 2;
/** Milliseconds between saves of the hash cache, so that a killed job need not read every file again. */
const SAVE_CACHE_EVERY_MS = 10_000;

/**
 * Brings the index up to date with a tree: walks it, sends files whose hash differs from the indexed one, and removes files that are gone.
 * It may be stopped at any moment and repeated; files that are indexed by then are not sent again.
 */
export async function indexTree(options: IndexTreeOptions): Promise<void> {
  const { target, cache, tally, signal } = options;
  setMaxListeners(0, signal); // every file that is being parsed listens
  tally.phase("walking");
  const { files, unreadable } = await listFiles(options);
  tally.total(files.length);

  if (target.seed) {
    tally.phase("copying");
    await seedIndex(options, target.seed, files);
  }
  tally.phase("comparing");
  const indexed = await indexedHashes(target, files, signal);
  const isLater = target.embedPending !== undefined && files.length - indexed.size >= VECTORS_LATER_FILES;
  const pass: Pass = { ...options, indexed, excluded: new Set(), retry: new Set(), vectors: isLater ? "later" : undefined };
  await sendChanged(pass, files);
  for (let attempt = 2; attempt <= ATTEMPTS && pass.retry.size > 0; attempt++) {
    tally.phase(`retrying ${pass.retry.size} files`);
    await sendAgain(pass, attempt === ATTEMPTS);
  }

  tally.phase("finishing");
  const present = new Set(files.map(({ path }) => path).filter((path) => !pass.excluded.has(path)));
  // Files in a folder that cannot be read now are not gone.
  for (const path of cache.paths()) if (unreadable.some((folder) => path.startsWith(folder))) present.add(path);
  if (present.size > 0) tally.removed(await target.finish([...present], signal));
  await sendLost(pass, files);
  cache.retain(new Set([...files.map(({ path }) => path), ...present]));
  await cache.save();
  // Also of an earlier job that was killed before it embedded every chunk. A watch compares often, and its first job has done this.
  if (isLater || options.onFolder === undefined) await embedPending(options);
}

/** Embeds the chunks that have no vector yet. Keyword and symbol search find all files by now. */
async function embedPending({ target, tally, signal }: IndexTreeOptions): Promise<void> {
  await target.embedPending?.(signal, (done, total) => tally.phase(`embedding: ${done} of ${total} chunks; keyword search is complete`));
}

interface Pass extends IndexTreeOptions, VectorOptions {
  /** Hashes in the index, by path. */
  readonly indexed: ReadonlyMap<string, string>;
  /** Walked files that turned out not to be indexable, or that vanished. */
  readonly excluded: Set<string>;
  /** Paths of files that failed and are tried again. */
  readonly retry: Set<string>;
}

async function listFiles({ root, includeIgnored = false, anywhere = false, signal, tally, onFolder }: IndexTreeOptions) {
  const files: WalkedFile[] = [];
  const unreadable: string[] = [];
  for await (const entry of walk(root, { ignoreRules: !includeIgnored, anywhere, signal, onFolder })) {
    if (entry.type === "file") files.push(entry);
    else if (entry.type === "skipped") tally.skipped(entry.reason, entry.path, entry.detail);
    else {
      if (entry.path === "./") throw new CairnError("unavailable", `The folder ${root} cannot be read (${entry.detail}).`);
      if (entry.path.endsWith("/")) unreadable.push(entry.path);
      tally.failed({ path: entry.path, reason: `${entry.reason}: ${entry.detail}` }, false);
    }
    if (files.length > LIMITS.codeTreeFiles)
      throw new CairnError(
        "too_large",
        `There are more than ${LIMITS.codeTreeFiles} files in ${root}. Index a folder in it, or exclude files with .cairnignore.`,
      );
    if (files.length % 500 === 0) tally.walked(files.length);
  }
  return { files, unreadable };
}

/** Lets a new index take over what another project has indexed. A failure costs time only: the files are indexed as usual. */
async function seedIndex(options: IndexTreeOptions, seed: NonNullable<IndexTarget["seed"]>, files: readonly WalkedFile[]): Promise<void> {
  const { target, signal } = options;
  if (((await target.counts(signal).catch(() => undefined))?.files ?? 1) > 0) return;
  const step = Math.ceil(files.length / SAMPLE_FILES);
  const sample = await hashFiles(
    options,
    files.filter((_, index) => index % step === 0),
  );
  await seed({ sample, list: () => hashFiles(options, files) }).catch((error: unknown) => {
    if (signal.aborted) throw error;
  });
}

/** Returns the content hashes of the files that can be indexed. The cache takes them, so that the comparison reads no file again. */
async function hashFiles({ root, cache, signal }: IndexTreeOptions, files: readonly WalkedFile[]): Promise<FileContent[]> {
  const hashed: FileContent[] = [];
  for (const file of files) {
    signal.throwIfAborted();
    const cached = cache.get(file.path, file);
    if (cached && "skip" in cached) continue;
    const source = cached ? undefined : await readSource(root, file.path);
    if (source?.type === "source") cache.set(file.path, source.stat, source);
    const contentHash = cached?.hash ?? (source?.type === "source" ? source.hash : undefined);
    if (contentHash !== undefined) hashed.push({ path: file.path, contentHash });
  }
  return hashed;
}

async function indexedHashes(target: IndexTarget, files: readonly WalkedFile[], signal: AbortSignal): Promise<Map<string, string>> {
  const indexed = new Map<string, string>();
  for (let start = 0; start < files.length; start += HASHES_AT_ONCE) {
    const paths = files.slice(start, start + HASHES_AT_ONCE).map(({ path }) => path);
    for (const [path, hash] of await target.hashes(paths, signal)) indexed.set(path, hash);
  }
  return indexed;
}

/** Sends the files that the index has lost since the comparison: an index that turns out to be damaged is dropped and restarted. */
async function sendLost(pass: Pass, files: readonly WalkedFile[]): Promise<void> {
  const { target, signal, excluded, retry } = pass;
  const expected = files.filter(({ path }) => !excluded.has(path) && !retry.has(path));
  const counts = await target.counts(signal).catch(() => undefined); // a repeated comparison is not worth failing the job
  if (!counts || counts.files >= expected.length) return;
  const indexed = await indexedHashes(target, expected, signal);
  await sendChanged(
    { ...pass, indexed },
    expected.filter(({ path }) => !indexed.has(path)),
  );
}

/** Sends every file that has changed, in batches. */
async function sendChanged(pass: Pass, files: readonly WalkedFile[]): Promise<void> {
  const { target, cache, signal, batchFiles = BATCH_FILES, batchBytes = BATCH_BYTES } = pass;
  const sending = slots(target.atOnce);
  let batch: SourceText[] = [];
  let bytes = 0;
  let savedAt = performance.now();

  const flush = async () => {
    const full = batch;
    batch = [];
    bytes = 0;
    if (full.length > 0) await sending.run(() => sendBatch(pass, full));
  };
  try {
    for (const file of files) {
      signal.throwIfAborted();
      const source = await readChanged(pass, file);
      if (source) {
        if (bytes + source.stat.sizeBytes > batchBytes) await flush();
        batch.push(source);
        bytes += source.stat.sizeBytes;
        if (batch.length >= batchFiles) await flush();
      }
      if (performance.now() - savedAt > SAVE_CACHE_EVERY_MS) {
        savedAt = performance.now();
        await cache.save();
      }
    }
    await flush();
  } finally {
    await sending.idle(); // no batch is in progress when the job ends, even if it fails
  }
  sending.raise();
}

/** Decides whether a file has changed: returns its content if its hash differs from the indexed one. Reads it only if the cache does not know the hash. */
async function readChanged(pass: Pass, file: WalkedFile): Promise<SourceText | undefined> {
  const { cache, tally, indexed } = pass;
  const { path } = file;
  const cached = cache.get(path, file);
  if (cached && "skip" in cached) {
    pass.excluded.add(path);
    tally.skippedFile(cached.skip, path);
    return undefined;
  }
  const source = cached ? undefined : await read(pass, path);
  const hash = cached?.hash ?? source?.hash;
  if (hash === undefined) return undefined;
  if (hash !== indexed.get(path)) return source ?? read(pass, path);
  if (source) cache.set(path, source.stat, source);
  tally.done("unchanged");
  return undefined;
}

/** Reads a file. Returns `undefined` after recording a file that is not indexable, has vanished, or cannot be read now. */
async function read(pass: Pass, path: string): Promise<SourceText | undefined> {
  pass.tally.phase("sending", path);
  const result = await readFile(pass, path);
  if (result && "failure" in result) {
    pass.retry.add(path);
    return undefined;
  }
  return result;
}

async function readFile(
  { root, cache, tally, excluded }: Pass,
  path: string,
): Promise<SourceText | { readonly failure: string } | undefined> {
  const result = await readSource(root, path);
  if (result.type === "source") return result;
  if (result.type === "failed" && result.detail !== "ENOENT") return { failure: `${result.reason}: ${result.detail}` };
  excluded.add(path);
  if (result.type === "failed") tally.vanished();
  else {
    tally.skippedFile(result.reason, path);
    if (result.stat) cache.set(path, result.stat, { skip: result.reason });
  }
  return undefined;
}

async function sendBatch(pass: Pass, batch: readonly SourceText[]): Promise<void> {
  try {
    const sources = new Map(batch.map((source) => [source.path, source]));
    for (const outcome of await pass.target.send(batch.map(toSourceFile), pass.signal, { vectors: pass.vectors })) {
      const source = sources.get(outcome.path);
      if (source && !record(pass, source, outcome)) pass.retry.add(outcome.path);
    }
  } catch (thrown) {
    const error = asCairnError(thrown);
    if (endsJob(error)) throw error;
    // The target rejected the batch because of one of its files: sending each file alone finds it.
    for (const { path } of batch) pass.retry.add(path);
  }
}

/** Records a file that was indexed, and returns whether it was. */
function record({ cache, tally }: Pass, source: SourceText, { status, chunks }: FileOutcome): boolean {
  if (status === "failed" || status === "partial") return false;
  cache.set(source.path, source.stat, source);
  tally.done(status, chunks, source.stat.sizeBytes);
  return true;
}

/** Reads and sends each failed file alone. After the last attempt it is reported as failed; the next job tries it again, since the index has no hash of it. */
async function sendAgain(pass: Pass, isLast: boolean): Promise<void> {
  for (const path of [...pass.retry]) {
    pass.signal.throwIfAborted();
    const source = await readFile(pass, path);
    const failure = source && ("failure" in source ? { reason: source.failure } : await sendOne(pass, source));
    if (!failure) pass.retry.delete(path);
    else if (isLast) pass.tally.failed({ path, ...failure }, true);
  }
}

/** Sends one file and returns why it failed, or `undefined` if it is indexed. */
async function sendOne(pass: Pass, source: SourceText): Promise<{ reason: string; searchable?: boolean } | undefined> {
  try {
    const [outcome] = await pass.target.send([toSourceFile(source)], pass.signal);
    if (outcome && record(pass, source, outcome)) return undefined;
    return { reason: outcome?.reason ?? "the index returned no outcome for it", searchable: outcome?.status === "partial" };
  } catch (thrown) {
    const error = asCairnError(thrown);
    if (endsJob(error)) throw error;
    return { reason: error.message };
  }
}

const toSourceFile = ({ path, content, hash }: SourceText): SourceFile => ({ path, content, hash });

/** Returns whether an error would affect every other file as well. */
function endsJob({ code }: CairnError): boolean {
  return code !== "invalid_input" && code !== "too_large" && code !== "internal" && code !== "conflict";
}
