import { randomBytes } from "node:crypto";
import { constants, existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { copyFile, open } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import {
  type Backup,
  type BackupEntry,
  type BackupFailure,
  type DatabaseSelection,
  databaseLabel,
  sameDatabase,
} from "../../../model/backup.ts";
import { CairnError } from "../../../model/errors.ts";
import type { Clock } from "../../../model/ids.ts";
import { VERSION } from "../../../model/version.ts";
import type { BackupStore } from "../../../ports/backup-store.ts";
import type { ThreadCall } from "../../../scheduling/run-in-thread.ts";
import { assertSchema } from "../../rows/schema-version.ts";
import type { DatabaseFile, DatabaseFiles } from "../driver/database-files.ts";
import { openSqlite } from "../driver/driver.ts";
import { loadEngine } from "../driver/engine.ts";
import { isDamage, translateSqliteError } from "../driver/errors.ts";
import { inFileThread } from "../driver/file-thread.ts";
import { FENCE_TABLE } from "../migration/fence.ts";
import { hasMigrationRecord, migratedTo } from "../migration/record.ts";
import { BACKUP_ID, backupFolder, isOwnerDead, OWNER_SUFFIX, remove } from "./backup-folder.ts";
import { fileHash, UNSOUND } from "./copy-file.ts";
import { replaceFile } from "./replace-file.ts";
import { verifyEntry } from "./verify-backup.ts";

export interface SqliteBackupOptions {
  readonly folder: string;
  readonly files: DatabaseFiles;
  readonly now: Clock;
  /** Closes this database in this process, if it is open. The next use opens it again. */
  readonly release: (file: DatabaseFile) => Promise<void>;
}

/** Backups of SQLite files: copied by SQLite while others write, verified, and complete or absent. */
export function sqliteBackups({ folder, files, now, release }: SqliteBackupOptions): BackupStore {
  const stored = backupFolder(folder);

  async function selectFiles(which: DatabaseSelection, withCode = false): Promise<readonly DatabaseFile[]> {
    if (which !== "all") assertHere(files.fileOf(which));
    const found = which === "all" ? await allHere() : [files.fileOf(which)].filter(({ path }) => existsSync(path));
    if (found.length > 0) return withCode ? [...found, ...(await codeIndexesOf(which))] : found;
    const away = which === "all" ? files.recordedMigrations().length : 0;
    if (away > 0)
      throw new CairnError("conflict", `All databases are on PostgreSQL (${away}): back them up with pg_dump. Nothing was backed up.`);
    const what = which === "all" ? "There is no database yet" : `There is no database of the ${databaseLabel(which)}`;
    throw new CairnError("not_found", `${what}, so nothing was backed up.`);
  }

  /** Includes databases whose file a killed migration has archived: they are reported as failed. */
  async function allHere(): Promise<readonly DatabaseFile[]> {
    const listed = await files.list();
    const lost = files.recordedMigrations().filter((one) => !one.isMigrated && !listed.some((other) => sameDatabase(one, other)));
    return [...listed, ...lost.map(files.fileOf)];
  }

  async function codeIndexesOf(which: DatabaseSelection): Promise<readonly DatabaseFile[]> {
    const all = await files.codeIndexes();
    return which === "all" ? all : all.filter(({ path }) => path === files.fileOf({ ...which, kind: "code" }).path);
  }

  /** Runs work in a new folder that becomes a complete backup, or is removed. */
  async function inPartial<T>(id: string, work: (partial: string) => Promise<T>): Promise<T> {
    let partial: string | undefined;
    try {
      partial = stored.begin(id);
      return await work(partial);
    } catch (error) {
      throw toUserError(error, folder);
    } finally {
      if (partial !== undefined) remove(partial);
    }
  }

  const get = async (id: string): Promise<Backup> => {
    if (!BACKUP_ID.test(id))
      throw new CairnError("invalid_input", `${JSON.stringify(id.slice(0, 60))} is not a backup id. See: cairn backup list`);
    return stored.read(id);
  };

  return {
    async create(which, { signal, progress, withCode } = {}) {
      const sources = await selectFiles(which, withCode);
      const id = newBackupId(now());
      return inPartial(id, async (partial) => {
        const databases: BackupEntry[] = [];
        const failed: BackupFailure[] = [];
        for (const [index, source] of sources.entries()) {
          const { kind, id: of } = source;
          progress?.(index, sources.length, databaseLabel(source));
          try {
            const onProgress = (done: number, total: number) =>
              progress?.(index + done / Math.max(total, 1), sources.length, databaseLabel(source));
            databases.push(await copyInto(partial, source, { signal, onProgress }));
          } catch (error) {
            if (!isSourceFault(error, source)) throw error;
            const failure = toUserError(error, source.path);
            if (which !== "all" && kind !== "code") throw failure;
            failed.push({ kind, id: of, reason: (failure as Error).message });
          }
        }
        if (databases.length === 0) throw new CairnError("unavailable", `No database could be backed up. ${failed[0]?.reason}`);
        const versions = { cairn: VERSION, node: process.versions.node, sqlite: await sqliteVersion() };
        const backup = stored.finish(partial, { id, createdAt: now(), versions, databases, failed });
        const onPostgres = files.recordedMigrations().flatMap(({ kind, id: of, isMigrated }) => (isMigrated ? [{ kind, id: of }] : []));
        return which === "all" ? { ...backup, onPostgres } : backup;
      });
    },

    list: async () => stored.all(),
    get,
    unusable: async () => stored.unusable(),

    async verify(id, level, { signal, progress } = {}) {
      const { location, databases } = await get(id);
      const verified = [];
      for (const [index, entry] of databases.entries()) {
        progress?.(index, databases.length, databaseLabel(entry));
        verified.push(await verifyEntry(location, entry, level, signal));
      }
      return { id, location, level, sound: verified.every(({ problems }) => problems.length === 0), databases: verified };
    },

    async restore(id, which, { overwrite, signal, progress }) {
      const { location, databases } = await get(id);
      const wanted = which.map((name) => {
        const entry = databases.find((one) => sameDatabase(one, name));
        if (!entry) throw new CairnError("not_found", `The backup ${id} does not hold the ${databaseLabel(name)}.`);
        return { entry, file: files.fileOf(name) };
      });
      // All checks run before the first database is touched.
      for (const { entry, file } of wanted) {
        assertHere(file);
        if (existsSync(file.path) && !overwrite && file.kind !== "code")
          throw new CairnError(
            "conflict",
            `The ${databaseLabel(file)} already has a database: ${file.path}. To replace it with the backup, use overwrite; the existing file is kept aside.`,
          );
        assertSchema(file.schema, entry.schema, `The ${databaseLabel(entry)} in the backup ${id}`);
        const { problems } = await verifyEntry(location, entry, "checksum", signal);
        if (problems.length > 0)
          throw new CairnError(
            "unavailable",
            `The backup ${id} is damaged (${databaseLabel(entry)}: ${problems[0]}), so it was not restored. Take another one.`,
          );
      }
      const restored = [];
      for (const [index, { entry, file }] of wanted.entries()) {
        progress?.(index, wanted.length, databaseLabel(entry));
        signal?.throwIfAborted();
        restored.push({
          kind: file.kind,
          id: file.id,
          location: file.path,
          replaced: await putInPlace(join(location, entry.file), entry, file),
        });
      }
      return restored.map((one) =>
        one.kind === "project" ? { ...one, hasCodeIndex: existsSync(files.fileOf({ kind: "code", id: one.id }).path) } : one,
      );
    },

    async trialRestore(which, { signal } = {}) {
      const [source] = await selectFiles(which);
      return inPartial(newBackupId(now()), async (partial) => {
        const entry = await copyInto(partial, source!, { signal });
        const target = join(partial, "restored.db");
        const start = performance.now();
        const { problems } = await verifyEntry(partial, entry, "checksum", signal);
        if (problems.length > 0)
          throw new CairnError("unavailable", `A trial restore of the ${databaseLabel(source!)} failed: ${problems[0]}`);
        await writeCopy(join(partial, entry.file), target, entry);
        (await openSqlite({ path: target, schema: source!.schema })).close();
        return (performance.now() - start) / 1_000;
      });
    },
  };

  async function putInPlace(from: string, entry: BackupEntry, file: DatabaseFile): Promise<string | undefined> {
    const stamp = newBackupId(now());
    const by = `${file.path}.restoring-${stamp}${OWNER_SUFFIX}`;
    try {
      mkdirSync(dirname(file.path), { recursive: true, mode: 0o700 });
      removeUnfinished(file.path);
      await writeCopy(from, by, entry);
      await release(file);
      return await replaceFile({ path: file.path, by, aside: join(file.root, "replaced", `${basename(file.path)}.${stamp}`) });
    } catch (error) {
      throw toUserError(error, file.path);
    } finally {
      rmSync(by, { force: true });
    }
  }
}

/** Raises `conflict` for a database that is on PostgreSQL or being migrated. */
function assertHere(file: DatabaseFile): void {
  if (!hasMigrationRecord(file.path)) return;
  const away = migratedTo(file.path) !== undefined;
  throw new CairnError(
    "conflict",
    away
      ? `The ${databaseLabel(file)} is on PostgreSQL: back it up with pg_dump, or bring it back with \`cairn migrate --to sqlite\`.`
      : `The ${databaseLabel(file)} is being migrated to PostgreSQL. Let \`cairn migrate\` finish, or undo it with \`cairn migrate --rollback\`.`,
    { details: { path: file.path } },
  );
}

/** Removes files that a killed restore of this database left. */
function removeUnfinished(path: string): void {
  for (const name of readdirSync(dirname(path)))
    if (name.startsWith(`${basename(path)}.restoring-`) && isOwnerDead(name)) rmSync(join(dirname(path), name), { force: true });
}

async function copyInto(partial: string, source: DatabaseFile, call: ThreadCall): Promise<BackupEntry> {
  assertHere(source);
  if (source.problem !== undefined) throw Object.assign(new Error(`It cannot be read: ${source.problem}`), { code: UNSOUND });
  const file = `${source.kind === "system" ? "system-" : ""}${basename(source.path)}`;
  const { bytes, sha256, tables, schema } = await inFileThread({ kind: "copy", from: source.path, path: join(partial, file) }, call);
  if (tables.some(({ name }) => name === FENCE_TABLE)) assertHere(source); // a migration started meanwhile: the copy would refuse every write
  return { kind: source.kind, id: source.id, file, bytes, sha256, schema, tables };
}

/** Copies a file that no process uses, and verifies the copy from the disk. */
async function writeCopy(from: string, to: string, { sha256 }: BackupEntry): Promise<void> {
  await copyFile(from, to, constants.COPYFILE_EXCL);
  const written = await open(to, "r+");
  try {
    await written.sync();
  } finally {
    await written.close();
  }
  if ((await fileHash(to)) !== sha256)
    throw new CairnError("unavailable", `What was written to ${to} differs from the backup. Check the disk.`);
}

/** Returns an id that sorts by time. The random end distinguishes backups of the same second. */
function newBackupId(now: string): string {
  return `${now.replace(/[-:]/g, "").replace(/\.\d+Z$/, "Z")}-${randomBytes(4).toString("hex")}`;
}

async function sqliteVersion(): Promise<string> {
  const { DatabaseSync } = await loadEngine();
  const connection = new DatabaseSync(":memory:");
  try {
    return (connection.prepare("SELECT sqlite_version() AS version").get() as { version: string }).version;
  } finally {
    connection.close();
  }
}

/** Returns whether an error concerns one database only, so that the others are still backed up. A full disk concerns all. */
function isSourceFault(error: unknown, { path, problem }: DatabaseFile): boolean {
  return problem !== undefined || hasMigrationRecord(path) || isDamage(error) || (error as NodeJS.ErrnoException).code === UNSOUND;
}

function toUserError(error: unknown, path: string): unknown {
  const known = translateSqliteError(error, path);
  if (known !== error || error instanceof CairnError || !(error instanceof Error)) return known;
  const { code } = error as NodeJS.ErrnoException;
  if (code === UNSOUND) return new CairnError("unavailable", error.message, { cause: error, details: { path, damaged: true } });
  if (code === "ENOSPC" || code === "EDQUOT")
    return new CairnError(
      "unavailable",
      `The disk that holds ${path} is full. The unfinished files were removed; free some space and try again.`,
      { cause: error },
    );
  if (["EACCES", "EPERM", "EROFS", "ENOTDIR", "EEXIST", "EIO", "ENOENT", "ENAMETOOLONG"].includes(code ?? ""))
    return new CairnError("unavailable", `${path} cannot be written (${code}). Check the folder, its permissions and its disk.`, {
      cause: error,
    });
  return error;
}
