import { z } from "zod";
import { readOwnFile } from "../../files/own-file.ts";
import type { FileStat, SkipReason } from "./walk.ts";
import { writeAtomically } from "./write-atomically.ts";

/** What reading a file returned: the hash of its content, or the reason why it is not indexed. */
export type CachedState = { readonly hash: string } | { readonly skip: SkipReason };

/**
 * Caches the hashes of files by size and times, as git's index does: an unchanged file is not read again. It does not record what is
 * indexed; only the index knows that.
 */
export interface HashCache {
  /** Returns the state of a file whose size and times have not changed since it was read. */
  get(path: string, stat: FileStat): CachedState | undefined;
  /** `readAtMs`: the time just before the file was read. */
  set(path: string, stat: FileStat & { readonly readAtMs: number }, state: CachedState): void;
  paths(): Iterable<string>;
  /** Removes all other paths. */
  retain(paths: ReadonlySet<string>): void;
  /** Writes the cache to disk if it has changed. */
  save(): Promise<void>;
}

/**
 * Milliseconds before a read in which a change is not trusted: a second change within the resolution of the file system's clock would keep
 * size and times. Some network file systems count in seconds.
 */
const UNTRUSTED_MS = 2_000;
/** Bytes of a cache file: 200,000 files with long paths. */
const CACHE_BYTES = 256 * 1024 * 1024;
/** A modification time that no file has. */
const NEVER = -1;

const CacheFile = z.object({
  version: z.literal(1),
  root: z.string(),
  /** path, size, mtime, ctime, hash or skip reason */
  files: z.array(z.tuple([z.string(), z.number(), z.number(), z.number(), z.string()])),
});

interface Entry extends FileStat {
  /** A hash or a skip reason. */
  readonly state: string;
}

/** Opens the cache of a tree. A file that cannot be read is treated as an empty cache: every file is read again. */
export async function openHashCache(file: string, root: string): Promise<HashCache> {
  const entries = new Map<string, Entry>();
  const stored = readCache(file);
  for (const [path, sizeBytes, mtimeMs, ctimeMs, state] of stored?.root === root ? stored.files : [])
    entries.set(path, { sizeBytes, mtimeMs, ctimeMs, state });
  let changed = false;

  return {
    get(path, { sizeBytes, mtimeMs, ctimeMs }) {
      const entry = entries.get(path);
      if (!entry || entry.sizeBytes !== sizeBytes || entry.mtimeMs !== mtimeMs || entry.ctimeMs !== ctimeMs) return undefined;
      return HASH.test(entry.state) ? { hash: entry.state } : { skip: entry.state as SkipReason };
    },
    set(path, { sizeBytes, mtimeMs, ctimeMs, readAtMs }, state) {
      changed = true;
      const isUntrusted = Math.max(mtimeMs, ctimeMs) > readAtMs - UNTRUSTED_MS;
      const text = "hash" in state ? state.hash : state.skip;
      entries.set(path, { sizeBytes, mtimeMs: isUntrusted ? NEVER : mtimeMs, ctimeMs, state: text });
    },
    paths: () => entries.keys(),
    retain(paths) {
      for (const path of entries.keys())
        if (!paths.has(path)) {
          entries.delete(path);
          changed = true;
        }
    },
    async save() {
      if (!changed) return;
      changed = false;
      const files = [...entries].map(([path, { sizeBytes, mtimeMs, ctimeMs, state }]) => [path, sizeBytes, mtimeMs, ctimeMs, state]);
      await writeAtomically(file, JSON.stringify({ version: 1, root, files }));
    },
  };
}

const HASH = /^[0-9a-f]{64}$/;

function readCache(path: string): z.output<typeof CacheFile> | undefined {
  try {
    return CacheFile.parse(JSON.parse(readOwnFile(path, CACHE_BYTES).toString("utf8")));
  } catch {
    return undefined; // absent, truncated by a full disk, or of another version
  }
}
