import { createHash } from "node:crypto";
import { createReadStream, lstatSync } from "node:fs";
import { access } from "node:fs/promises";
import { join, sep } from "node:path";
import { openRegularFile } from "../../files/regular-file.ts";
import { LIMITS } from "../../model/limits.ts";

/** Whether the file on disk is another than the one with this content, or is gone. */
export type StaleCheck = (projectPath: string, path: string, contentHash: string) => Promise<boolean>;

/** As many files as a few answers can show. */
const REMEMBERED = 1_000;

/** Reads the files that an answer shows, and remembers their hashes for as long as size and times stay the same. */
export function staleCheck(): StaleCheck {
  const hashes = new Map<string, { readonly look: string; readonly hash: string; readonly readAt: number }>();
  return async (projectPath, path, contentHash) => {
    const absolute = join(projectPath, path);
    if (!absolute.startsWith(join(projectPath, sep))) return true;
    try {
      // At once: it takes microseconds, and a turn of the threads that indexing keeps busy takes milliseconds.
      const { size, mtimeMs, ctimeMs, ...stat } = lstatSync(absolute);
      if (size > LIMITS.codeFileBytes || (stat.mode & 0o170000) !== 0o100000) return true;
      const look = `${size} ${mtimeMs} ${ctimeMs}`;
      const known = hashes.get(absolute);
      // A change within the resolution of the clock would not show in the times.
      if (known?.look === look && known.readAt - Math.max(mtimeMs, ctimeMs) > 2_000) return known.hash !== contentHash;
      const readAt = Date.now();
      const hash = await hashOf(absolute);
      hashes.delete(absolute);
      hashes.set(absolute, { look, hash, readAt });
      if (hashes.size > REMEMBERED) hashes.delete(hashes.keys().next().value!);
      return hash !== contentHash;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // It is gone; unless all of the project is on another machine.
      if (code === "ENOENT" || code === "ENOTDIR")
        return access(projectPath).then(
          () => true,
          () => false,
        );
      return false; // it cannot be read here, so nothing is known against it
    }
  };
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash("sha256");
  const fd = openRegularFile(path);
  for await (const chunk of createReadStream(path, { fd })) hash.update(chunk as Buffer);
  return hash.digest("hex");
}
