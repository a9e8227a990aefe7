import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, renameSync, rmSync, statSync, writeSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { makeFolder } from "../../../files/make-folder.ts";
import { readRegularFile } from "../../../files/regular-file.ts";
import { type Backup, type BackupManifest, DATABASE_KINDS } from "../../../model/backup.ts";
import { CairnError } from "../../../model/errors.ts";
import { sha256Hex } from "../../../model/ids.ts";
import { once } from "../../../model/once.ts";
import type { UnusableBackup } from "../../../ports/backup-store.ts";
import { syncFolder } from "./copy-file.ts";

const manifestSchemas = once(() => {
  const Database = { kind: z.enum(DATABASE_KINDS), id: z.string() };
  const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);
  const Manifest = z.strictObject({
    id: z.string(),
    createdAt: z.iso.datetime(),
    versions: z.strictObject({ cairn: z.string(), node: z.string(), sqlite: z.string() }),
    databases: z.array(
      z.strictObject({
        ...Database,
        // No path: a manifest must not make a restore read a file from elsewhere.
        file: z.string().regex(/^[A-Za-z0-9_-][A-Za-z0-9._-]*\.db$/),
        bytes: z.int(),
        sha256: Sha256,
        schema: z.array(z.strictObject({ version: z.int(), name: z.string(), checksum: z.string() })),
        tables: z.array(z.strictObject({ name: z.string(), rows: z.int(), sha256: Sha256 })),
      }),
    ),
    failed: z.array(z.strictObject({ ...Database, reason: z.string() })),
  });
  return { Manifest, ManifestFile: z.strictObject({ format: z.literal(1), manifest: Manifest, sha256: Sha256 }) };
});

export const MANIFEST = "manifest.json";
/** Bytes of a manifest: tables and checksums of some ten thousand databases. */
const MANIFEST_BYTES = 256 * 1024 * 1024;
export const BACKUP_ID = /^\d{8}T\d{6}Z-[0-9a-f]{8}$/;
const PARTIAL = /^\.partial-/;

/** Stores each backup in a folder named by its id. An unfinished backup is renamed atomically when complete. */
export function backupFolder(folder: string) {
  function read(id: string): Backup {
    const location = join(folder, id);
    let text: string;
    try {
      text = readRegularFile(join(location, MANIFEST), MANIFEST_BYTES).toString("utf8");
    } catch (cause) {
      throw new CairnError("not_found", `There is no backup ${id} in ${folder}. See: cairn backup list`, { cause });
    }
    try {
      const { manifest, sha256 } = manifestSchemas().ManifestFile.parse(JSON.parse(text));
      if (sha256Hex(JSON.stringify(manifest)) !== sha256) throw new Error("its checksum is wrong");
      if (manifest.id !== id) throw new Error(`it is that of ${manifest.id}`);
      return { ...manifest, location };
    } catch (cause) {
      throw new CairnError("unavailable", `The manifest of the backup ${id} is damaged, so it is not used. Take another backup.`, {
        cause,
        details: { location },
      });
    }
  }

  const entries = () => (statSync(folder, { throwIfNoEntry: false })?.isDirectory() ? readdirSync(folder) : []);

  return {
    read,
    /** Returns the complete backups, newest first. */
    all(): Backup[] {
      const ids = entries().filter((name) => BACKUP_ID.test(name));
      return ids
        .flatMap((id) => {
          try {
            return [read(id)];
          } catch (error) {
            if (error instanceof CairnError) return []; // reported by `unusable`
            throw error;
          }
        })
        .sort((a, b) => (a.createdAt < b.createdAt || (a.createdAt === b.createdAt && a.id < b.id) ? 1 : -1));
    },
    /** Creates a folder for an unfinished backup and removes those of dead processes on this machine. */
    begin(id: string): string {
      try {
        makeFolder(folder);
      } catch (cause) {
        const { code } = cause as NodeJS.ErrnoException;
        throw new CairnError("unavailable", `The backup folder ${folder} cannot be created (${code}). Choose another one.`, { cause });
      }
      for (const { location, running } of this.unusable())
        if (!running && PARTIAL.test(location.slice(folder.length + 1))) remove(location);
      const partial = join(folder, `.partial-${id}${OWNER_SUFFIX}`);
      mkdirSync(partial, { mode: 0o700 });
      writing.add(partial);
      return partial;
    },
    /** Writes the manifest, syncs the folder and renames it to the backup's id. */
    finish(partial: string, manifest: BackupManifest): Backup {
      const canonical = manifestSchemas().Manifest.parse(manifest); // sorts the keys in the order of the schema, as `read` does
      const text = `${JSON.stringify({ format: 1, manifest: canonical, sha256: sha256Hex(JSON.stringify(canonical)) }, null, 2)}\n`;
      const descriptor = openSync(join(partial, MANIFEST), "wx", 0o600);
      try {
        writeSync(descriptor, text);
        fsyncSync(descriptor);
      } finally {
        closeSync(descriptor);
      }
      syncFolder(partial);
      const location = join(folder, manifest.id);
      renameSync(partial, location);
      writing.delete(partial);
      syncFolder(folder);
      return { ...manifest, location };
    },
    unusable(): UnusableBackup[] {
      return entries().flatMap((name): UnusableBackup[] => {
        const location = join(folder, name);
        if (PARTIAL.test(name)) {
          const mine = name.endsWith(OWNER_SUFFIX);
          return [{ location, reason: "it is unfinished", running: mine ? writing.has(location) : !isOwnerDead(name) }];
        }
        if (!BACKUP_ID.test(name)) return [];
        try {
          read(name);
          return [];
        } catch (error) {
          return [{ location, reason: (error as Error).message, running: false }];
        }
      });
    },
  };
}

export function remove(partial: string): void {
  rmSync(partial, { recursive: true, force: true });
  writing.delete(partial);
}

/** Unfinished backups of this process. A process id is not enough: in a container, a restarted process has the same id. */
const writing = new Set<string>();

/** The end of an unfinished file's name, which identifies its owner: `-<process id>@<machine>`. */
export const OWNER_SUFFIX = `-${process.pid}@${hostname()}`;

/** Returns whether the process in the owner suffix of this name has ended. Returns false for another machine, where that is unknown. */
export function isOwnerDead(name: string): boolean {
  const [, pid, host] = /-(\d+)@(.+)$/s.exec(name) ?? [];
  if (host !== hostname() || Number(pid) === process.pid) return false;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "EPERM";
  }
}
