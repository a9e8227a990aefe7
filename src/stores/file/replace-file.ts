import { open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { newId } from "../../model/ids.ts";

/** Replaces a file atomically, and durably unless it has no meaning after a crash. The new one is readable and writable by its owner only. */
export async function replaceFile(path: string, content: string, { durable = true } = {}): Promise<void> {
  const draft = `${path}.${newId()}.tmp`;
  try {
    const file = await open(draft, "wx", 0o600);
    try {
      await file.writeFile(content);
      if (durable) await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  if (!durable) return;
  const folder = await open(join(path, ".."), "r").catch(() => undefined); // Windows opens no folders
  await folder?.sync().catch(() => {}); // some file systems sync no folders; the rename itself is still atomic
  await folder?.close();
}
