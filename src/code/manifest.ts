import type { FileRename } from "../model/code-index.ts";
import type { ManifestPage } from "../model/index-job.ts";
import type { CodeBatch, CodeIndexStore } from "../ports/code-store.ts";

/** Files that are removed in one transaction. Bounds its memory and its log. */
const REMOVES_PER_COMMIT = 500;

/**
 * Removes the files in the range of the page that the manifest does not name. A file whose content has appeared at another path since is
 * reported as a rename: the other file took over its vectors when it was indexed.
 */
export async function removeMissing(
  store: CodeIndexStore,
  { manifest, after, until }: ManifestPage,
  at: string,
): Promise<{ readonly removed: readonly string[]; readonly renamed: readonly FileRename[] }> {
  const files = await store.files();
  const seen = new Set(manifest);
  const inRange = (path: string) => (after === undefined || path > after) && (until === undefined || path <= until);
  const isGone = ({ path }: { readonly path: string }) => inRange(path) && !seen.has(path);
  const gone = files.filter(isGone);
  if (gone.length === 0) return { removed: [], renamed: [] };
  const newcomers = new Map<string, { path: string; generation: number }[]>();
  for (const file of files) if (!isGone(file)) newcomers.set(file.contentHash, [...(newcomers.get(file.contentHash) ?? []), file]);
  const removes = gone.map(({ path, contentHash, generation }) => {
    const candidates = newcomers.get(contentHash) ?? [];
    const place = candidates.findIndex((candidate) => candidate.generation > generation);
    const [newcomer] = place >= 0 ? candidates.splice(place, 1) : [];
    return { path, contentHash, renamedTo: newcomer?.path };
  });
  const removed = await removeFiles(store, removes, at);
  return {
    removed: removes.filter(({ path, renamedTo }) => removed.has(path) && renamedTo === undefined).map(({ path }) => path),
    renamed: removes.flatMap(({ path, renamedTo }) =>
      removed.has(path) && renamedTo !== undefined ? [{ oldPath: path, newPath: renamedTo, detectedAt: at }] : [],
    ),
  };
}

/** Removes files in several transactions and returns the paths of files that still had the given content. */
export async function removeFiles(
  store: CodeIndexStore,
  removes: NonNullable<CodeBatch["removes"]>,
  at: string,
): Promise<ReadonlySet<string>> {
  const removed = new Set<string>();
  for (let start = 0; start < removes.length; start += REMOVES_PER_COMMIT)
    for (const path of (await store.commit({ at, removes: removes.slice(start, start + REMOVES_PER_COMMIT) })).removed) removed.add(path);
  return removed;
}
