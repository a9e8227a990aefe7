import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { WalkEntry, WalkOptions } from "../../src/client/files/walk.ts";
import { walk } from "../../src/client/files/walk.ts";

/** A folder of its own with these files in it, and what removes it again. */
export function tree(files: Readonly<Record<string, string | Uint8Array>> = {}): { readonly root: string; remove(): void } {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "cairn-walk-")));
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  return { root, remove: () => rmSync(root, { recursive: true, force: true }) };
}

export async function entries(root: string, options: WalkOptions = {}): Promise<WalkEntry[]> {
  const found: WalkEntry[] = [];
  for await (const entry of walk(root, options)) found.push(entry);
  return found;
}

/** `path` for files, `path: reason` for the rest. */
export async function lines(root: string, options: WalkOptions = {}): Promise<string[]> {
  return (await entries(root, options)).map((entry) => (entry.type === "file" ? entry.path : `${entry.path}: ${entry.reason}`));
}
