import { createHash } from "node:crypto";
import { constants, type Stats } from "node:fs";
import { type FileHandle, open, realpath } from "node:fs/promises";
import { join, sep } from "node:path";
import { isGeneratedText } from "./generated.ts";
import { DEFAULT_LIMIT_BYTES, type FailedEntry, type FileStat, reasonOf, type SkipReason } from "./walk.ts";

/** The state of a file that was read. It may be newer than the state that the walk found. */
export interface ReadStat extends FileStat {
  /** The time just before the file was opened. */
  readonly readAtMs: number;
}

/** The text of a file, exactly as on disk: its UTF-8 form is the file's bytes. */
export interface SourceText {
  readonly type: "source";
  readonly path: string;
  readonly content: string;
  /** SHA-256 of the bytes, in hex. The only place on the client side that hashes a file to index. */
  readonly hash: string;
  readonly stat: ReadStat;
}

/** A file that is not indexed for what it is or contains. */
export interface SkippedSource {
  readonly type: "skipped";
  readonly path: string;
  readonly reason: SkipReason;
  readonly detail?: string;
  /** Present if the content was the reason: an unchanged file need not be read again. */
  readonly stat?: ReadStat;
}

/**
 * Reads and hashes a walked file, or returns why it is not indexed. The path may have changed since the walk: a symbolic link in its
 * place, or in place of a folder above it, is not followed.
 */
export async function readSource(
  /** The real path of the root, as returned by `resolveRoot`. */
  root: string,
  path: string,
  { limitBytes = DEFAULT_LIMIT_BYTES }: { readonly limitBytes?: number } = {},
): Promise<SourceText | SkippedSource | FailedEntry> {
  const absolute = join(root, path);
  if (!absolute.startsWith(root.endsWith(sep) ? root : root + sep))
    return { type: "failed", path, reason: "unreadable", detail: "the path is outside the root" };
  const readAtMs = Date.now();
  let file: FileHandle | undefined;
  try {
    if ((await realpath(absolute)) !== absolute) return { type: "skipped", path, reason: "symlink", detail: "became a symbolic link" };
    file = await open(absolute, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
    const stat = await file.stat();
    if (!stat.isFile()) return { type: "skipped", path, reason: "special" };
    const bytes = await readUpTo(file, limitBytes);
    if (!bytes) return { type: "skipped", path, reason: "too_large", detail: `more than ${limitBytes} bytes` };
    return classify(path, bytes, stat, readAtMs);
  } catch (error) {
    return { type: "failed", path, reason: "unreadable", detail: reasonOf(error) };
  } finally {
    await file?.close();
  }
}

function classify(
  path: string,
  bytes: Uint8Array,
  { mtimeMs, ctimeMs }: Stats,
  readAtMs: number,
): SourceText | SkippedSource | FailedEntry {
  const stat = { sizeBytes: bytes.length, mtimeMs, ctimeMs, readAtMs };
  // The test that git uses: a NUL near the start marks binary content.
  if (bytes.subarray(0, BINARY_PROBE_BYTES).includes(0)) return { type: "skipped", path, reason: "binary", stat };
  const content = decode(bytes);
  if (content === undefined) return { type: "failed", path, reason: "encoding", detail: "the content is not valid UTF-8" };
  if (isGeneratedText(content)) return { type: "skipped", path, reason: "generated", stat };
  return { type: "source", path, content, hash: createHash("sha256").update(bytes).digest("hex"), stat };
}

const BINARY_PROBE_BYTES = 8_000;

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined; // a fatal decoder throws only for invalid UTF-8
  }
}

/** Reads the whole file, or returns `undefined` if it exceeds the limit: it may have grown since the walk. */
async function readUpTo(file: FileHandle, limitBytes: number): Promise<Uint8Array | undefined> {
  const { size } = await file.stat();
  if (size > limitBytes) return undefined;
  let buffer = new Uint8Array(size + 1);
  let length = 0;
  for (;;) {
    const { bytesRead } = await file.read(buffer, length, buffer.length - length, length);
    if (bytesRead === 0) return buffer.subarray(0, length);
    length += bytesRead;
    if (length > limitBytes) return undefined;
    if (length === buffer.length) {
      const bigger = new Uint8Array(Math.min(buffer.length * 2, limitBytes + 1));
      bigger.set(buffer);
      buffer = bigger;
    }
  }
}
