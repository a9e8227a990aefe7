import { createHash } from "node:crypto";
import { createReadStream, lstatSync } from "node:fs";
import { access } from "node:fs/promises";
import { join, sep } from "node:path";
import { openRegularFile } from "../../files/regular-file.ts";
import { LIMITS } from "../../model/limits.ts";

/** Returns whether the file on disk has another content than this hash, or is missing. */
export type StaleCheck = (projectPath: string, path: string, contentHash: string) => Promise<boolean>;

/** Cached hashes: the files of a few answers. */
const CACHED_FILES = 1_000;

/** Returns a check that reads files and caches their hashes for as long as size and times do not change. */
export function staleCheck(): StaleCheck {
  const hashes = new Map<string, { readonly stat: string; readonly hash: string; readonly readAt: number }>();
  return async (projectPath, path, contentHash) => {
    const absolute = join(projectPath, path);
    if (!absolute.startsWith(join(projectPath, sep))) return true;
    try {
      // Synchronous: it takes microseconds, while the thread pool, which indexing keeps busy, would take milliseconds.
      const { size, mtimeMs, ctimeMs, mode } = lstatSync(absolute);
      if (size > LIMITS.codeFileBytes || (mode & 0o170000) !== 0o100000) return true;
      const stat = `${size} ${mtimeMs} ${ctimeMs}`;
      const known = hashes.get(absolute);
      // A change within the resolution of the clock does not change the times.
      if (known?.stat === stat && known.readAt - Math.max(mtimeMs, ctimeMs) > 2_000) return known.hash !== contentHash;
      const readAt = Date.now();
      const hash = await hashOf(absolute);
      hashes.delete(absolute);
      hashes.set(absolute, { stat, hash, readAt });
      if (hashes.size > CACHED_FILES) hashes.delete(hashes.keys().next().value!);
      return hash !== contentHash;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // The file is gone, unless the whole project is on another machine.
      if (code === "ENOENT" || code === "ENOTDIR")
        return access(projectPath).then(
          () => true,
          () => false,
        );
      return false; // unreadable: not known to be stale
    }
  };
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash("sha256");
  const fd = openRegularFile(path);
  for await (const chunk of createReadStream(path, { fd })) hash.update(chunk as Buffer);
  return hash.digest("hex");
}
