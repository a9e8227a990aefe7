import { existsSync, readdirSync, statfsSync, statSync } from "node:fs";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { sameDatabase } from "../../../model/backup.ts";
import type { Clock } from "../../../model/ids.ts";
import type { HealthProbe, Leftover, ProbedDatabase } from "../../../ports/health-probe.ts";
import { compareSchema } from "../../rows/schema-version.ts";
import { isOwnerDead } from "../backup/backup-folder.ts";
import { isMigrationRunning } from "../migration/lock.ts";
import { checkFile } from "./damage.ts";
import type { DatabaseFile, DatabaseFiles, DatabaseFolders } from "./database-files.ts";
import { inodeOf } from "./driver.ts";
import { loadEngine } from "./engine.ts";
import { inFileThread } from "./file-thread.ts";
import { otherUsers } from "./other-users.ts";
import { foreignProgramsIn } from "./own-schema.ts";
import type { FailedProbe, FileProbe } from "./probe-file.ts";

export interface SqliteHealthOptions extends DatabaseFolders {
  readonly backupDir: string;
  readonly files: DatabaseFiles;
  readonly now: Clock;
}

/** Inspects SQLite files from outside: sizes, schemas, writing processes, free disk space and leftover files. */
export function sqliteHealth({ dataDir, stateDir, backupDir, files, now }: SqliteHealthOptions): HealthProbe {
  async function probeFiles(found: readonly DatabaseFile[], windowSeconds: number): Promise<ProbedDatabase[]> {
    if (found.length === 0) return [];
    const nowSeconds = Date.parse(now()) / 1_000;
    const probes = await inFileThread({ kind: "probe", paths: found.map(({ path }) => path), nowSeconds, windowSeconds });
    return found.map((file, index) => describeFile(file, probes[index]!, windowSeconds));
  }

  return {
    async engine() {
      const { DatabaseSync, name } = await loadEngine();
      const connection = new DatabaseSync(":memory:");
      try {
        return `SQLite ${(connection.prepare("SELECT sqlite_version() AS version").get() as { version: string }).version} (${name})`;
      } finally {
        connection.close();
      }
    },
    databases: async (windowSeconds) => probeFiles([...(await files.list()), ...(await files.codeIndexes())], windowSeconds),
    systems: (windowSeconds) => probeFiles(files.systems(), windowSeconds),
    async check({ kind, id, location }) {
      const { problems } = await checkFile(location);
      return problems.length > 0 ? problems : foreignProgramsIn(location, files.fileOf({ kind, id }).schema);
    },
    migrated: async () => files.recordedMigrations().filter(({ isMigrated }) => isMigrated),
    async unfinishedMigrations(databases) {
      const migrations = files.recordedMigrations();
      const recorded = migrations
        .filter(({ record }) => record.state !== "migrated")
        .map(async ({ kind, id, record: { where, direction, startedAt } }) => {
          const running = await isMigrationRunning(files.fileOf({ kind, id }).path);
          return { kind, id, where, direction, startedAt, running };
        });
      const unrecorded = databases
        .filter((database) => database.fenced && !migrations.some((other) => sameDatabase(database, other)))
        .map(async ({ kind, id, location }) => ({ kind, id, running: await isMigrationRunning(location) }));
      return Promise.all([...recorded, ...unrecorded]);
    },
    async disks() {
      const places = [dataDir, stateDir, backupDir].filter((path) => existsSync(path));
      const byDevice = new Map(places.map((path) => [statSync(path).dev, path] as const).reverse());
      return [...byDevice.values()].map((path) => {
        const { bavail, bsize } = statfsSync(path);
        return { path, freeBytes: bavail * bsize };
      });
    },
    async leftovers(databases) {
      const live = databases.map(({ location }) => location);
      return [
        ...[join(dataDir, "projects"), dataDir, join(stateDir, "checkpoints")].flatMap(strayFiles),
        ...[dataDir, stateDir].flatMap((root) => secondNames(join(root, "replaced"), live)),
      ];
    },
  };
}

function describeFile(file: DatabaseFile, probe: FileProbe | FailedProbe, windowSeconds: number): ProbedDatabase {
  const { kind, id, path, rescued } = file;
  const base = { kind, id, location: path, bytes: sizeWithLog(path) };
  const problem = file.problem ?? ("problem" in probe ? probe.problem : undefined);
  if (problem !== undefined || "problem" in probe) return { ...base, schema: "unknown", halfSnapshots: [], problem, rescued };
  const { schema, halfSnapshots, fenced } = probe;
  const state = compareSchema(file.schema, schema);
  if (kind !== "system") return { ...base, schema: state, halfSnapshots, fenced };
  const { busiest, seconds, processes } = probe.activity ?? { seconds: windowSeconds, processes: [] };
  const here = (otherUsers(path) ?? []).map((pid) => `${pid}@${hostname()}`);
  const activity = {
    processes: [...new Set([...processes, ...here])],
    commitsPerSecond: (busiest?.commits ?? 0) / seconds,
    busiestComponent: busiest?.component,
    windowSeconds,
  };
  return { ...base, schema: state, halfSnapshots, fenced, activity };
}

/** The newest writes are still in the write-ahead log. */
function sizeWithLog(path: string): number {
  return ["", "-wal"].reduce((sum, end) => sum + (statSync(path + end, { throwIfNoEntry: false })?.size ?? 0), 0);
}

function strayFiles(folder: string): Leftover[] {
  if (!existsSync(folder)) return [];
  const names = new Set(readdirSync(folder));
  return [...names].sort().flatMap((name): Leftover[] => {
    const path = join(folder, name);
    const database = /^(.+\.db)-(?:wal|shm|journal)$/.exec(name)?.[1];
    if (database !== undefined && !names.has(database))
      return [{ path, reason: `It belongs to ${database}, which does not exist. No process uses it.` }];
    if (/\.db\.restoring-/.test(name) && isOwnerDead(name))
      return [{ path, reason: "It is from an unfinished restore. No process uses it." }];
    return [];
  });
}

/** Finds second names of files in use. A restore that is killed in its last step leaves one; the next restore removes it. */
function secondNames(folder: string, live: readonly string[]): Leftover[] {
  if (!existsSync(folder)) return [];
  const inodes = new Map(live.map((path) => [inodeOf(path), path]));
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    const other = inodes.get(inodeOf(path));
    return other === undefined
      ? []
      : [
          {
            path,
            reason: `It is a second name of ${other} in ${dirname(other)}, left by a restore that was killed; the next restore removes it.`,
          },
        ];
  });
}
