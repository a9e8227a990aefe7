import { existsSync, linkSync, readdirSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { newId } from "../../../../model/ids.ts";
import type { FileContent } from "../../../../ports/code-store.ts";
import { runInThread } from "../../../../scheduling/run-in-thread.ts";
import { inodeOf, openSqlite } from "../../driver/driver.ts";
import { isCodeFile } from "./code-file.ts";
import { codeSchema } from "./schema.ts";

/** Indexes of other projects that are looked at, newest first. */
const DONORS_MAX = 20;
/** Share of the sample that another index must have: else indexing the files costs less than copying and removing the others. */
const SHARED_MIN = 0.8;

/** What the thread does: copies the index of `donor` to `copy`, for another project, without the files that are not listed. */
export interface SeedOrder {
  readonly donor: string;
  readonly copy: string;
  readonly projectId: string;
  readonly files: readonly FileContent[];
  readonly at: string;
}

/** What the thread made: the number of files, and the inode of the copy. */
export interface Seeded {
  readonly files: number;
  readonly inode: number | undefined;
}

/**
 * Creates the index of a project as a copy of the index of another project in the same folder, such as another clone or worktree. The copy
 * has only files that `list` returns with the same path and content. Does nothing if the project has an index. Returns the number of files.
 */
export async function seedIndex(
  path: string,
  projectId: string,
  sample: readonly FileContent[],
  list: () => Promise<readonly FileContent[]>,
): Promise<number> {
  removeSeeds(path); // of processes that were killed
  if (hasIndex(path) || sample.length === 0) return 0;
  const donor = await findDonor(path, sample);
  if (donor === undefined) return 0;
  // A name of its own: a process that lost its lease may copy at the same time.
  const copy = `${path}.seed-${newId()}`;
  attempts.add(basename(copy));
  try {
    const order: SeedOrder = { donor, copy, projectId, files: await list(), at: new Date().toISOString() };
    const { files, inode } = await runInThread<Seeded>("stores/sqlite/projects/code/seed-worker.js", order);
    if (files === 0 || inode === undefined) return 0;
    if (inodeOf(copy) !== inode) return 0; // another process removed the copy, and an empty file took its name
    return !hasIndex(path) && place(copy, path) ? files : 0;
  } finally {
    attempts.delete(basename(copy));
    removeSeeds(path);
  }
}

/** Returns whether a project has an index, or a write-ahead log without one, which SQLite would apply to the copy. */
const hasIndex = (path: string) => existsSync(path) || existsSync(`${path}-wal`);

/** The names of the copies that this process makes now. */
const attempts = new Set<string>();

/** Removes the unfinished copies of an index, except the copies of this process. */
export function removeSeeds(path: string): void {
  removeCopies(path, [...attempts]);
}

/** Removes all unfinished copies of an index. An attempt of this process then copies nothing. */
export function removeAllSeeds(path: string): void {
  removeCopies(path, []);
}

function removeCopies(path: string, kept: readonly string[]): void {
  const folder = dirname(path);
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder)) {
    if (!name.startsWith(`${basename(path)}.seed`) || kept.some((copy) => name.startsWith(copy))) continue;
    try {
      rmSync(join(folder, name), { force: true });
    } catch {
      // Windows keeps a file that another process has open. That process removes it.
    }
  }
}

/** Names the copy, unless an index was created meanwhile. The copy is complete by then, so a reader sees all of it or no index. */
function place(copy: string, path: string): boolean {
  try {
    linkSync(copy, path);
    return true;
  } catch {
    return false; // another process was faster, or the file system has no links: the files are indexed as usual
  }
}

/** Returns the newest index that has most of the sample with the same content. */
async function findDonor(path: string, sample: readonly FileContent[]): Promise<string | undefined> {
  const folder = dirname(path);
  const others = existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
  const indexes = others
    .filter((file) => file !== path && isCodeFile(file))
    .map((file) => ({ file, changedMs: statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0 }))
    .sort((a, b) => b.changedMs - a.changedMs);
  for (const { file } of indexes.slice(0, DONORS_MAX)) if ((await countShared(file, sample)) >= SHARED_MIN * sample.length) return file;
  return undefined;
}

/** Counts the files of the sample that an index has with the same content. An index that cannot be read has none. */
async function countShared(file: string, sample: readonly FileContent[]): Promise<number> {
  try {
    const database = await openSqlite({ path: file, schema: codeSchema, mustExist: true, keepLog: true });
    try {
      return database.read(
        (tx) =>
          tx.get<{ shared: number }>(
            `SELECT count(*) AS shared FROM json_each(?) wanted
               JOIN indexed_files f ON f.content_hash = wanted.value ->> 1 AND f.file_path = wanted.value ->> 0 WHERE f.notice IS NULL`,
            JSON.stringify(sample.map(({ path, contentHash }) => [path, contentHash])),
          )!.shared,
      );
    } finally {
      database.close();
    }
  } catch {
    return 0; // damaged, of another version or locked
  }
}
