import { constants, type Stats } from "node:fs";
import { type FileHandle, open, realpath } from "node:fs/promises";
import { join, sep } from "node:path";
import { isGeneratedText } from "./generated.ts";
import { DEFAULT_LIMIT_BYTES, type FailedEntry, reasonOf, type SkippedEntry } from "./walk.ts";

/** The text of a file, exactly as on disk: its UTF-8 form is the file's bytes. */
export interface SourceText {
  readonly type: "source";
  readonly path: string;
  readonly content: string;
  /** Of the state that was read; it may be newer than the one that was walked. */
  readonly sizeBytes: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
}

/**
 * Reads a walked file, or says why it is not for the index after all. The path may have changed since the walk: a link put
 * in its place, or in place of a folder above it, is not followed.
 */
export async function readSource(
  /** The real path of the root, as `resolveRoot` gives it. */
  root: string,
  path: string,
  { limitBytes = DEFAULT_LIMIT_BYTES }: { readonly limitBytes?: number } = {},
): Promise<SourceText | SkippedEntry | FailedEntry> {
  const absolute = join(root, path);
  if (!absolute.startsWith(root.endsWith(sep) ? root : root + sep))
    return { type: "failed", path, reason: "unreadable", detail: "the path leads out of the root" };
  let file: FileHandle | undefined;
  try {
    if ((await realpath(absolute)) !== absolute) return { type: "skipped", path, reason: "symlink", detail: "became a symbolic link" };
    file = await open(absolute, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
    const stat = await file.stat();
    if (!stat.isFile()) return { type: "skipped", path, reason: "special" };
    const bytes = await readUpTo(file, limitBytes);
    if (!bytes) return { type: "skipped", path, reason: "too_large", detail: `more than ${limitBytes} bytes` };
    return classify(path, bytes, stat);
  } catch (error) {
    return { type: "failed", path, reason: "unreadable", detail: reasonOf(error) };
  } finally {
    await file?.close();
  }
}

function classify(path: string, bytes: Uint8Array, { mtimeMs, ctimeMs }: Stats): SourceText | SkippedEntry | FailedEntry {
  const look = { sizeBytes: bytes.length, mtimeMs, ctimeMs };
  // Git's own test: a NUL near the start means that this is no text.
  if (bytes.subarray(0, BINARY_PROBE_BYTES).includes(0)) return { type: "skipped", path, reason: "binary", look };
  const content = decode(bytes);
  if (content === undefined) return { type: "failed", path, reason: "encoding", detail: "the content is not valid UTF-8" };
  if (isGeneratedText(content)) return { type: "skipped", path, reason: "generated", look };
  return { type: "source", path, content, ...look };
}

const BINARY_PROBE_BYTES = 8_000;

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined; // the one thing a fatal decoder throws for
  }
}

/** All of the file, or nothing if it is longer than the limit: it may have grown since it was walked. */
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
