import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { newId } from "../../model/ids.ts";

/** Whole or not at all: readers see the old file or the new one. Only the person may read it. */
export async function writeWhole(path: string, content: string): Promise<void> {
  const unfinished = `${path}.${newId()}.tmp`;
  try {
    await writeFile(unfinished, content, { mode: 0o600, flag: "wx" }).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error;
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      await writeFile(unfinished, content, { mode: 0o600, flag: "wx" });
    });
    await rename(unfinished, path);
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  }
}
