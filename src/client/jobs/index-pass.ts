import { setMaxListeners } from "node:events";
import type { SourceFile } from "../../code/index-batch.ts";
import { asCairnError, CairnError } from "../../model/errors.ts";
import { sha256Hex } from "../../model/ids.ts";
import type { FileOutcome } from "../../model/index-job.ts";
import { LIMITS } from "../../model/limits.ts";
import { slots } from "../../scheduling/concurrency.ts";
import type { Memo } from "../files/memo.ts";
import { readSource, type SourceText } from "../files/read-source.ts";
import { type OnFolder, type WalkedFile, walk } from "../files/walk.ts";
import type { IndexTarget } from "./index-target.ts";
import type { Tally } from "./tally.ts";

export interface PassOptions {
  /** The real path of the tree. */
  readonly root: string;
  readonly target: IndexTarget;
  readonly memo: Memo;
  readonly tally: Tally;
  readonly signal: AbortSignal;
  /** True takes in what the ignore rules leave out. */
  readonly includeIgnored?: boolean | undefined;
  readonly anywhere?: boolean | undefined;
  readonly batchFiles?: number | undefined;
  readonly batchBytes?: number | undefined;
  readonly onFolder?: OnFolder | undefined;
}

export const BATCH_FILES = 10;
export const BATCH_BYTES = 1_000_000;
/** Paths in one question about hashes. */
const HASHES_AT_ONCE = 1_000;
/** A file that fails is tried this often before the job tells it as failed. */
const TRIES = 2;
/** The memo is written down this often during a long pass, so that a killed one need not read everything again. */
const MEMO_EVERY_MS = 10_000;

/**
 * Brings the index up to date with a tree: everything is looked at, what changed is sent, and what is gone is removed. It may
 * be stopped at any moment and started again; what is in the index by then is not sent twice.
 */
export async function indexPass(options: PassOptions): Promise<void> {
  const { target, memo, tally, signal } = options;
  setMaxListeners(0, signal); // every file that is being parsed listens
  tally.phase("walking");
  const { files, unreadable } = await look(options);
  tally.total(files.length);

  tally.phase("comparing");
  const indexed = await indexedHashes(target, files, signal);
  const gone = new Set<string>();
  const retry = await sendChanged(options, files, indexed, gone);
  for (let attempt = 2; attempt <= TRIES && retry.size > 0; attempt++) {
    tally.phase(`retrying ${retry.size} files`);
    await sendAgain(options, retry, gone, attempt === TRIES);
  }

  tally.phase("finishing");
  const present = new Set(files.map(({ path }) => path).filter((path) => !gone.has(path)));
  // What stands in a folder that cannot be read just now is not gone.
  for (const path of memo.paths()) if (unreadable.some((folder) => path.startsWith(folder))) present.add(path);
  if (present.size > 0) tally.removed(await target.finish([...present], signal));
  await sendLost(options, files, gone, retry);
  memo.keep(new Set([...files.map(({ path }) => path), ...present]));
  await memo.save();
}

/** Sends the files that the index has lost since the comparison: it may have turned out to be damaged, and was then started again. */
async function sendLost(options: PassOptions, files: readonly WalkedFile[], gone: Set<string>, failed: ReadonlySet<string>): Promise<void> {
  const { target, signal } = options;
  const expected = files.filter(({ path }) => !gone.has(path) && !failed.has(path));
  const counts = await target.counts(signal).catch(() => undefined); // a repeated comparison is not worth failing the job
  if (!counts || counts.files >= expected.length) return;
  const indexed = await indexedHashes(target, expected, signal);
  await sendChanged(
    options,
    expected.filter(({ path }) => !indexed.has(path)),
    indexed,
    gone,
  );
}

async function look({ root, includeIgnored = false, anywhere = false, signal, tally, onFolder }: PassOptions) {
  const files: WalkedFile[] = [];
  const unreadable: string[] = [];
  for await (const entry of walk(root, { ignoreRules: !includeIgnored, anywhere, signal, onFolder })) {
    if (entry.type === "file") files.push(entry);
    else if (entry.type === "skipped") tally.skipped(entry.reason, entry.path);
    else {
      if (entry.path === "./") throw new CairnError("unavailable", `The folder ${root} cannot be read (${entry.detail}).`);
      if (entry.path.endsWith("/")) unreadable.push(entry.path);
      tally.failed({ path: entry.path, reason: `${entry.reason}: ${entry.detail}` }, false);
    }
    if (files.length > LIMITS.codeTreeFiles)
      throw new CairnError(
        "too_large",
        `There are more than ${LIMITS.codeTreeFiles} files in ${root}. Index a folder in it, or leave some out with .cairnignore.`,
      );
    if (files.length % 500 === 0) tally.looked(files.length);
  }
  return { files, unreadable };
}

async function indexedHashes(target: IndexTarget, files: readonly WalkedFile[], signal: AbortSignal): Promise<Map<string, string>> {
  const indexed = new Map<string, string>();
  for (let start = 0; start < files.length; start += HASHES_AT_ONCE) {
    const paths = files.slice(start, start + HASHES_AT_ONCE).map(({ path }) => path);
    for (const [path, hash] of await target.hashes(paths, signal)) indexed.set(path, hash);
  }
  return indexed;
}

/** What was read and waits to be sent. */
interface Ready {
  readonly source: SourceText;
  readonly hash: string;
  readonly readAt: number;
}

/** Sends every file that the index does not have as it is. Gives back those that failed, to be tried again; `gone` gets those that are none for the index. */
async function sendChanged(
  options: PassOptions,
  files: readonly WalkedFile[],
  indexed: ReadonlyMap<string, string>,
  gone: Set<string>,
): Promise<Set<string>> {
  const { target, memo, tally, signal, batchFiles = BATCH_FILES, batchBytes = BATCH_BYTES } = options;
  const retry = new Set<string>();
  const sending = slots(target.atOnce);
  let batch: Ready[] = [];
  let bytes = 0;
  let memoAt = performance.now();

  const flush = async () => {
    const full = batch;
    batch = [];
    bytes = 0;
    if (full.length > 0) await sending.run(() => sendBatch(options, full, retry));
  };
  const one = async (file: WalkedFile) => {
    const before = memo.of(file);
    if (before && "skip" in before) {
      gone.add(file.path);
      tally.skippedFile(before.skip, file.path);
      return;
    }
    if (before && before.hash === indexed.get(file.path)) {
      tally.done(file.path, "unchanged");
      return;
    }
    tally.phase("sending", file.path);
    const ready = await readFileFor(options, file.path, gone);
    if (ready === undefined) return;
    if ("failure" in ready) {
      retry.add(file.path);
      return;
    }
    if (ready.hash === indexed.get(file.path)) {
      memo.set(ready.source, ready, ready.readAt);
      tally.done(file.path, "unchanged");
      return;
    }
    if (bytes + ready.source.sizeBytes > batchBytes) await flush();
    batch.push(ready);
    bytes += ready.source.sizeBytes;
    if (batch.length >= batchFiles) await flush();
  };
  try {
    for (const file of files) {
      signal.throwIfAborted();
      await one(file);
      if (performance.now() - memoAt > MEMO_EVERY_MS) {
        memoAt = performance.now();
        await memo.save();
      }
    }
    await flush();
  } finally {
    await sending.idle(); // nothing is under way any more when the job ends, however it ends
  }
  sending.raise();
  return retry;
}

/** A file to be sent, nothing if it is none for the index after all, or why it cannot be read now. */
async function readFileFor(
  { root, memo, tally }: PassOptions,
  path: string,
  gone: Set<string>,
): Promise<Ready | { readonly failure: string } | undefined> {
  const readAt = Date.now();
  const source = await readSource(root, path);
  if (source.type === "source") return { source, hash: sha256Hex(source.content), readAt };
  if (source.type === "failed" && source.detail !== "ENOENT") return { failure: `${source.reason}: ${source.detail}` };
  gone.add(path);
  if (source.type === "failed") tally.vanished();
  else {
    tally.skippedFile(source.reason, path);
    if (source.look) memo.set({ path, ...source.look }, { skip: source.reason }, readAt);
  }
  return undefined;
}

async function sendBatch(options: PassOptions, batch: readonly Ready[], retry: Set<string>): Promise<void> {
  try {
    take(options, batch, await options.target.send(batch.map(toSend), options.signal), retry);
  } catch (thrown) {
    const error = asCairnError(thrown);
    if (endsJob(error) || batch.length === 0) throw error;
    // Something in the batch is not taken: each file by itself shows which one.
    for (const { source } of batch) retry.add(source.path);
  }
}

function take({ memo, tally }: PassOptions, batch: readonly Ready[], outcomes: readonly FileOutcome[], retry: Set<string>): void {
  const ready = new Map(batch.map((one) => [one.source.path, one]));
  for (const outcome of outcomes) {
    const one = ready.get(outcome.path);
    if (!one) continue;
    if (outcome.status === "failed" || outcome.status === "partial") {
      retry.add(outcome.path);
      continue;
    }
    memo.set(one.source, one, one.readAt);
    tally.done(outcome.path, outcome.status, outcome.chunks, one.source.sizeBytes);
  }
}

/** Each file by itself, read anew. After the last try it is told as failed; the next job tries again, since the index has no hash of it. */
async function sendAgain(options: PassOptions, retry: Set<string>, gone: Set<string>, last: boolean): Promise<void> {
  const { target, memo, tally, signal } = options;
  for (const path of [...retry]) {
    signal.throwIfAborted();
    const ready = await readFileFor(options, path, gone);
    const failure = ready && ("failure" in ready ? { reason: ready.failure } : await sendOne(target, ready, signal, { memo, tally }));
    if (!failure) retry.delete(path);
    else if (last) tally.failed({ path, ...failure }, true);
  }
}

/** Nothing if the file is in the index now, else why not. */
async function sendOne(
  target: IndexTarget,
  ready: Ready,
  signal: AbortSignal,
  { memo, tally }: Pick<PassOptions, "memo" | "tally">,
): Promise<{ reason: string; searchable?: boolean } | undefined> {
  const { path, sizeBytes } = ready.source;
  try {
    const [outcome] = await target.send([toSend(ready)], signal);
    if (!outcome || outcome.status === "failed" || outcome.status === "partial")
      return { reason: outcome?.reason ?? "the index did not say what became of it", searchable: outcome?.status === "partial" };
    memo.set(ready.source, ready, ready.readAt);
    tally.done(path, outcome.status, outcome.chunks, sizeBytes);
    return undefined;
  } catch (thrown) {
    const error = asCairnError(thrown);
    if (endsJob(error)) throw error;
    return { reason: error.message };
  }
}

const toSend = ({ source, hash }: Ready): SourceFile => ({ path: source.path, content: source.content, hash });

/** Reasons that no other file would be free of. */
function endsJob({ code }: CairnError): boolean {
  return code !== "invalid_input" && code !== "too_large" && code !== "internal" && code !== "conflict";
}
