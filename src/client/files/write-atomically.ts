import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { newId } from "../../model/ids.ts";

/** Replaces a file atomically: readers see the old content or the new content. Only the current user may read it. */
export async function writeAtomically(path: string, content: string): Promise<void> {
  const temporary = `${path}.${newId()}.tmp`;
  try {
    await writeFile(temporary, content, { mode: 0o600, flag: "wx" }).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error;
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      await writeFile(temporary, content, { mode: 0o600, flag: "wx" });
    });
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
