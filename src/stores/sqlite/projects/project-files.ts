import { closeSync, existsSync, mkdtempSync, openSync, readSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { openRegularFile } from "../../../files/regular-file.ts";
import { CairnError } from "../../../model/errors.ts";
import type { Clock } from "../../../model/ids.ts";
import type { ProjectFiles } from "../../../ports/project-files.ts";
import type { CopyOptions } from "../../../ports/storage.ts";
import { runInThread } from "../../../scheduling/run-in-thread.ts";
import { syncFile, syncFolder } from "../backup/copy-file.ts";
import { sqliteDatabases } from "../driver/databases.ts";
import { openSqlite } from "../driver/driver.ts";
import { claim, ownerOf } from "./owner.ts";
import { releaseProject, sqliteProject } from "./project.ts";
import { projectSchema } from "./project-schema.ts";

/** Exports and imports projects as SQLite files, in the schema of the SQLite storage and without a WAL. */
export function sqliteProjectFiles({ now }: { readonly now: Clock }): ProjectFiles {
  return {
    async write(file, projectId, fill, { signal } = {}) {
      assertFree(file);
      await inScratch(dirname(file), async (scratch) => {
        const path = join(scratch, "filling.db");
        const databases = sqliteDatabases();
        try {
          await claim(await databases.handle({ path, schema: projectSchema })(), projectId, now);
          await fill(sqliteProject(databases, { projectId, path, now }).stores);
        } finally {
          releaseProject(databases, path);
          await databases.close();
        }
        await exportDatabase(path, file, { signal });
      });
    },

    async read(file, work, { signal } = {}) {
      assertDatabase(file);
      return inScratch(tmpdir(), async (scratch) => {
        const path = join(scratch, "reading.db");
        await exportDatabase(file, path, { signal });
        const projectId = await ownerOfFile(path, file);
        const databases = sqliteDatabases();
        try {
          // A file with another schema version is refused.
          return await work(sqliteProject(databases, { projectId, path, now }).stores);
        } finally {
          releaseProject(databases, path);
          await databases.close();
        }
      });
    },
  };
}

/**
 * Copies a consistent snapshot of a database to a new file and verifies the copy; a failure leaves no file. Unlike a backup, which
 * copies every page, the copy contains no deleted content, because the file may be given to another person.
 */
export async function exportDatabase(
  from: string,
  to: string,
  { signal, withoutDeleted = false }: Omit<CopyOptions, "withCode"> = {},
): Promise<void> {
  assertFree(to);
  await inScratch(dirname(to), async (scratch) => {
    const copy = join(scratch, "copy.db");
    closeSync(openSync(copy, "wx", 0o600)); // created with mode 0600, so that no other user can read it
    const input = { from, to: copy, withoutDeleted };
    const problems = await runInThread<readonly string[]>("stores/sqlite/projects/export-worker.js", input, { signal }).catch((cause) => {
      throw signal?.aborted ? cause : new CairnError("unavailable", `${from} could not be copied to ${to}: ${cause.message}`, { cause });
    });
    if (problems.length > 0)
      throw new CairnError("invalid_input", `${from} is damaged, so nothing was copied from it: ${problems.slice(0, 3).join("; ")}`, {
        details: { damaged: true, problems: problems.slice(0, 20) },
      });
    syncFile(copy);
    assertFree(to);
    renameSync(copy, to);
    syncFolder(dirname(to));
  });
}

async function inScratch<T>(folder: string, work: (scratch: string) => Promise<T>): Promise<T> {
  let scratch: string;
  try {
    scratch = mkdtempSync(join(folder, ".cairn-"));
  } catch (error) {
    throw unusable(folder, error);
  }
  try {
    return await work(scratch);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Returns the project that a file belongs to. `shown` is the name of the file in messages. */
export async function ownerOfFile(path: string, shown: string): Promise<string> {
  const database = await openSqlite({ path, mustExist: true });
  try {
    const owner = ownerOf(database);
    if (owner !== undefined) return owner;
  } catch (error) {
    if (!/no such table/.test(String((error as Error).cause ?? error))) throw error;
  } finally {
    database.close();
  }
  throw new CairnError("invalid_input", `${shown} is a database, but not that of a project of Cairn.`);
}

/** Every SQLite file begins with this; another file is refused immediately. */
function assertDatabase(file: string): void {
  const start = Buffer.alloc(16);
  try {
    const descriptor = openRegularFile(file);
    try {
      readSync(descriptor, start, 0, 16, 0);
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    throw error instanceof CairnError ? error : unusable(file, error);
  }
  if (start.toString("latin1") !== "SQLite format 3\0")
    throw new CairnError("invalid_input", `${file} is not a database file. Lines of JSON are for: cairn checkpoint import`);
}

function assertFree(file: string): void {
  if (existsSync(file)) throw new CairnError("conflict", `There is a file ${file} already. Choose another name, or remove it.`);
}

function unusable(path: string, cause: unknown): CairnError {
  const code = (cause as NodeJS.ErrnoException).code;
  if (code === "ENOENT") return new CairnError("not_found", `There is no file or folder ${path}.`, { cause });
  return new CairnError("unavailable", `${path} cannot be used (${code}).`, { cause });
}
