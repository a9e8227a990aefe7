import { existsSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { backups } from "../admin/backups.ts";
import { databases } from "../admin/databases.ts";
import { type DoctorDeps, doctor } from "../admin/doctor.ts";
import { keys } from "../admin/keys.ts";
import { stats } from "../admin/stats.ts";
import { transfer } from "../admin/transfer.ts";
import { checkpoints } from "../checkpoints/service.ts";
import { CheckpointOutput } from "../checkpoints/wire-schemas.ts";
import { indexing } from "../code/indexing.ts";
import { parserPool } from "../code/parser-pool.ts";
import { patiently } from "../code/patiently.ts";
import { code } from "../code/service.ts";
import { countTokens } from "../embedders/tokens.ts";
import { exposedPaths } from "../files/permissions.ts";
import { knowledge } from "../knowledge/service.ts";
import { followingStorage } from "../migrate/follow-storage.ts";
import { DOCTOR_DEFAULTS, type DoctorSettings } from "../model/doctor.ts";
import { CairnError } from "../model/errors.ts";
import { newId, projectDatabaseName, SHARED_PROJECT_ID } from "../model/ids.ts";
import { POOL_SIZES } from "../model/limits.ts";
import { SYSTEM_DEFAULTS } from "../model/system-rules.ts";
import type { Cairn } from "../operations/cairn.ts";
import { checkedCheckpoints, checkedKnowledge, checkedRuns } from "../operations/checked.ts";
import { toWire } from "../operations/wire.ts";
import type { BackupStore } from "../ports/backup-store.ts";
import { type Clock, systemClock } from "../ports/clock.ts";
import type { Embedder } from "../ports/embedder.ts";
import type { HealthProbe } from "../ports/health-probe.ts";
import type { IndexQueue } from "../ports/index-queue.ts";
import type { RunStore } from "../ports/run-store.ts";
import type { Storage } from "../ports/storage.ts";
import type { SystemStorage } from "../ports/system-store.ts";
import { backfiller } from "../recall/backfiller.ts";
import { embeddings } from "../recall/embeddings.ts";
import { runs } from "../runs/service.ts";
import { withoutTimeLimit } from "../scheduling/time-limit.ts";
import { fileKeyStore } from "../stores/file/keys.ts";
import { memoryIndexQueue } from "../stores/memory/index-queue.ts";
import { memoryKeyStore } from "../stores/memory/keys.ts";
import { memoryStorage } from "../stores/memory/storage.ts";
import { memorySystemStorage } from "../stores/memory/systems.ts";
import { sqliteBackups } from "../stores/sqlite/backup/backups.ts";
import { type DatabaseFile, databaseFiles } from "../stores/sqlite/driver/database-files.ts";
import { sqliteHealth } from "../stores/sqlite/driver/health.ts";
import { findAbandonedMigration } from "../stores/sqlite/migration/lock.ts";
import { listMigrated, migratedTo } from "../stores/sqlite/migration/record.ts";
import { sqliteProjectFiles } from "../stores/sqlite/projects/project-files.ts";
import { type SqliteStorage, sqliteStorage } from "../stores/sqlite/storage.ts";
import type { SqliteSystemStorage } from "../stores/sqlite/systems/storage.ts";
import { type SystemSettings, systems } from "../systems/service.ts";
import { observeSystems } from "../telemetry/doctor-metrics.ts";
import { observeEmbedding } from "../telemetry/embedding-metrics.ts";
import { databaseFlags } from "../text/database-flags.ts";
import { redactor } from "../text/redact.ts";
import type { RedactionOptions } from "../text/redact-state.ts";
import { shellWord } from "../text/shell-word.ts";
import { type EmbedderChoice, openEmbedders } from "./open-embedders.ts";
import { openRunStore } from "./open-run-store.ts";
import { defaultStateDir, isImplicitStateDir, openSystemStorage } from "./open-system-storage.ts";
import { ownStorage } from "./own-storage.ts";

/** How to open Cairn. Everything has a default: SQLite files under the home folder and the bundled embedding model. */
export interface OpenOptions {
  /**
   * `sqlite` (default), `memory`, a `postgres://` URL, or a `Storage` of your own for projects: see docs/adding-a-store.md. Your own
   * stays open when Cairn closes, and runs, systems and API keys stay in files.
   */
  readonly storage?: "sqlite" | "memory" | (string & {}) | Storage;
  /** Where SQLite files and API keys live; default `~/.cairn`. */
  readonly dataDir?: string;
  /** Where the SQLite files of systems live; default `.state` in the current folder, `/var/lib/cairn` in production. */
  readonly stateDir?: string | undefined;
  /** `stateDir` is the default of a caller who did not choose it. Records of migrations in it are refused: it may come with a repository. */
  readonly implicitStateDir?: boolean | undefined;
  /** Where backups are kept; default `backups` in `dataDir`. */
  readonly backupDir?: string | undefined;
  /** When a system has outgrown its file, and what else deserves attention; what is left out has a default. */
  readonly doctor?: Partial<Omit<DoctorSettings, "commitsPerSecond">> | undefined;
  /** Write budget and snapshots of the systems that `cairn.systems.open` opens. */
  readonly systems?: SystemSettings | undefined;
  /** Connections that this process opens to PostgreSQL at most. */
  readonly postgres?: Partial<Record<keyof typeof POOL_SIZES, number>> | undefined;
  /** Which model to embed with, or embedders of your own in order of preference. */
  readonly embedder?: EmbedderChoice | readonly Embedder[];
  /** A Qdrant server that answers semantic searches. Its vectors are copies: the database keeps them all. */
  readonly qdrant?: { readonly url?: string | undefined; readonly apiKey?: string | undefined } | undefined;
  /**
   * Secrets are taken out before a text is stored or embedded; `allow` holds regular expressions of values that are none. States of
   * runs and systems are stored as they are unless `state` is true.
   */
  readonly redaction?: RedactionOptions | undefined;
  readonly code?: {
    /** Batches of code that may wait to be indexed; more are refused until there is room. */
    readonly queueJobs?: number | undefined;
  };
  /** Hosts, with a port unless it is 5432, to which callers with an API key may migrate databases; default none. */
  readonly migrate?: { readonly allowedHosts?: readonly string[] | undefined } | undefined;
  /** Told once, in words for a person, when something is not as good as it could be; default: a process warning. */
  readonly onNotice?: (message: string) => void;
  readonly now?: Clock;
  readonly newId?: () => string;
}

/** Opens Cairn as a library. The only place that knows concrete adapters. */
export async function open(options: OpenOptions = {}): Promise<Cairn> {
  const now = options.now ?? systemClock;
  const dataDir = options.dataDir ?? join(homedir(), ".cairn");
  const redact = redactor(options.redaction);
  const database = await openDatabase(options, dataDir, now);
  const storage = await withQdrant(database, options);
  const keyStore = options.storage === "memory" ? memoryKeyStore() : fileKeyStore({ dataDir });
  const runStore = await openRuns(options, dataDir, now);
  const systemStorage = await openSystems(options);
  const upkeep = await openUpkeep({ database, runStore, systemStorage }, { options, dataDir, now });
  const { embedders, usage } = openEmbedders({ choice: options.embedder, redact, onNotice: options.onNotice ?? warn });
  const stopObserving = observeEmbedding(usage);
  const { commitsPerSecond = SYSTEM_DEFAULTS.commitsPerSecond } = options.systems ?? {};
  const settings = { ...DOCTOR_DEFAULTS, ...options.doctor, commitsPerSecond };
  const folders = [dataDir, options.stateDir ?? defaultStateDir(), options.backupDir ?? join(dataDir, "backups")];
  const exposed = () => (options.storage === "memory" ? [] : exposedPaths(folders));
  const onSystems: DoctorDeps["onSystems"] = (found) => observed.remember(found);
  const examining = doctor({ storage, runs: runStore, ...upkeep, settings, now, exposedPaths: exposed, onSystems });
  const observed = observeSystems(() => examining.systems());
  const later = backfiller({ embedders });
  const parsers = parserPool(); // its threads start with the first file that needs one
  const background = new Set<Promise<unknown>>();
  const closing = new AbortController();
  const services = { embedders, backfiller: later, now, newId: options.newId ?? newId, redact };
  const versions = embeddings({
    embedders,
    find: async ({ projectPath, collection }) => (await storage.find(projectPath))?.[collection].embeddings,
    checkRecords: (projectPath) => storage.checkRecords(projectPath),
    inBackground(work) {
      const ended = withoutTimeLimit(() => work(closing.signal))
        .catch(() => {})
        .finally(() => background.delete(ended)); // what is left undone shows in the list of versions
      background.add(ended);
    },
  });
  const codeIndex = code({
    ...services,
    storage: projectsOnly(storage),
    parsers,
    redact: redactor({ ...options.redaction, keepLines: true }),
  });
  const queue = await openIndexQueue(options, services, (work, signal) => codeIndex.perform(work, { signal }));
  const kept = checkpoints({ ...services, storage: projectsOnly(storage), countTokens });
  const learnt = knowledge({ ...services, storage });
  return {
    keys: keys({ store: keyStore, now }),
    databases: databases({ storage }),
    backups: backups({ store: upkeep.backups, storage: storageKind(options) }),
    doctor: examining,
    transfer: transfer({
      storage,
      files: sqliteProjectFiles({ now }),
      checkpoints: (projectPath, records, { signal }) =>
        kept.import({ projectPath, records: records.map((record) => toWire(CheckpointOutput, record)) }, { signal }),
      knowledge: (projectPath, records, { signal }) => learnt.restore({ database: projectPath, records }, { signal }),
    }),
    migrations: {
      allowedHosts: options.migrate?.allowedHosts ?? [],
      async migrate(input) {
        const { storage: base = "sqlite", stateDir = defaultStateDir() } = options;
        const implicit = options.implicitStateDir ?? (options.stateDir === undefined && isImplicitStateDir());
        if (implicit && touchesSystems(input.which, stateDir))
          throw new CairnError(
            "invalid_input",
            `Systems are moved only from a folder that you chose, so that every process finds them afterwards. Set state_dir: CAIRN_STATE_DIR=${shellWord(stateDir)}`,
          );
        if (typeof base !== "string")
          throw new CairnError("conflict", "Only SQLite and PostgreSQL databases can be migrated, and this storage is neither.");
        if (base === "memory") throw new CairnError("conflict", "What is kept in memory cannot be moved.");
        const { openMigrations } = await import("./open-migrations.ts"); // only those who use it pay for loading pg
        return openMigrations({ dataDir, stateDir, now, ...(base !== "sqlite" && { baseUrl: base }) }).migrate(input);
      },
    },
    stats: stats({ storage, usage }),
    checkpoints: checkedCheckpoints(kept),
    knowledge: checkedKnowledge(learnt),
    code: codeIndex,
    indexing: indexing({ code: codeIndex, queue }),
    embeddings: versions,
    runs: checkedRuns(runs({ store: runStore, now })),
    systems: systems({
      storage: systemStorage,
      scratch: async () => memorySystemStorage(),
      now,
      newId: services.newId,
      settings: options.systems ?? {},
    }),
    projects: () => storage.projects(),
    async check() {
      await storage.check();
      if ("check" in systemStorage) await systemStorage.check();
    },
    async close() {
      stopObserving();
      observed.stop();
      closing.abort();
      await queue.close();
      await later.close();
      await parsers.close();
      await embedders.close();
      await Promise.all(background);
      await runStore.close();
      await systemStorage.close();
      await storage.close();
    },
  };
}

/** PostgreSQL has one queue for all servers; elsewhere each process has its own. */
async function openIndexQueue(
  { storage = "sqlite", code: { queueJobs: capacity } = {}, onNotice = warn }: OpenOptions,
  { now, newId: id }: { readonly now: Clock; readonly newId: () => string },
  perform: Parameters<typeof patiently>[0],
): Promise<IndexQueue> {
  if (typeof storage !== "string" || storage === "sqlite" || storage === "memory")
    return memoryIndexQueue({ perform: patiently(perform), now, newId: id, capacity });
  const { postgresIndexQueue } = await import("../stores/postgres/projects/index-queue.ts");
  return postgresIndexQueue({ url: storage, perform: patiently(perform), capacity, onTrouble: onNotice });
}

/** Runs belong to no project's database: one file next to them, or a schema of their own in the same PostgreSQL. */
async function openRuns({ storage = "sqlite", postgres, redaction }: OpenOptions, dataDir: string, now: Clock): Promise<RunStore> {
  const poolMax = postgres?.runsPoolSize ?? POOL_SIZES.runsPoolSize;
  if (storage === "memory") return openRunStore({ storage: "memory", now, redaction });
  if (typeof storage !== "string" || storage === "sqlite")
    return openRunStore({ storage: "sqlite", path: join(dataDir, "runs.db"), now, poolMax, redaction });
  return openRunStore({ storage: "postgres", url: storage, poolMax, redaction });
}

/** Nor do systems: a file each, or a schema each in the same PostgreSQL. */
async function openSystems({
  storage = "sqlite",
  stateDir,
  implicitStateDir,
  postgres,
  redaction,
}: OpenOptions): Promise<SystemStorage | SqliteSystemStorage> {
  const poolMax = postgres?.systemsPoolSize ?? POOL_SIZES.systemsPoolSize;
  if (storage === "memory") return openSystemStorage({ storage: "memory", redaction });
  if (typeof storage !== "string" || storage === "sqlite")
    return openSystemStorage({ storage: "sqlite", stateDir, implicitStateDir, poolMax, redaction });
  return openSystemStorage({ storage: "postgres", url: storage, poolMax, redaction });
}

function touchesSystems(which: "all" | { readonly kind: string }, stateDir: string): boolean {
  const folder = join(stateDir, "checkpoints");
  return which === "all" ? existsSync(folder) && readdirSync(folder).length > 0 : which.kind === "system";
}

interface OpenedStores {
  readonly database: Storage | SqliteStorage;
  readonly runStore: RunStore;
  readonly systemStorage: SystemStorage | SqliteSystemStorage;
}

/** What looks after databases: files are backed up and looked at by us, a PostgreSQL by itself. */
async function openUpkeep(
  { database, runStore, systemStorage }: OpenedStores,
  { options, dataDir, now }: { readonly options: OpenOptions; readonly dataDir: string; readonly now: Clock },
): Promise<{ readonly backups?: BackupStore; readonly probe?: HealthProbe }> {
  if (options.storage === "memory" || typeof options.storage === "object") return {};
  if (!("release" in database)) {
    const { postgresHealth } = await import("../stores/postgres/driver/health.ts");
    return { probe: postgresHealth({ url: options.storage! }) };
  }
  const folders = { dataDir, stateDir: options.stateDir ?? defaultStateDir() };
  const backupDir = options.backupDir ?? join(dataDir, "backups");
  const files = databaseFiles(folders);
  const release = async ({ kind, id, path }: DatabaseFile) => {
    if (kind === "runs") await runStore.close();
    else if (kind !== "system") database.release(path);
    else if ("release" in systemStorage) systemStorage.release(id);
  };
  return {
    backups: sqliteBackups({ folder: backupDir, files, now, release }),
    probe: sqliteHealth({ ...folders, backupDir, files, now }),
  };
}

async function withQdrant(storage: Storage, options: OpenOptions): Promise<Storage> {
  const { url, apiKey } = options.qdrant ?? {};
  if (url === undefined) return storage;
  const { qdrantStorage } = await import("../vectors/qdrant/storage.ts"); // few have one
  return qdrantStorage(storage, { url, apiKey });
}

function storageKind({ storage = "sqlite" }: OpenOptions): "sqlite" | "memory" | "postgres" | "own" {
  if (typeof storage !== "string") return "own";
  return storage === "memory" ? "memory" : storage === "sqlite" ? "sqlite" : "postgres";
}

const warn = (message: string) => process.emitWarning(message, "CairnNotice");

async function openDatabase(
  { storage = "sqlite", onNotice = warn, postgres = {} }: OpenOptions,
  dataDir: string,
  now: Clock,
): Promise<Storage | SqliteStorage> {
  if (typeof storage !== "string") return ownStorage(storage);
  if (storage === "memory") return memoryStorage();
  if (storage === "sqlite") {
    const local = sqliteStorage({ dataDir, now, onNotice });
    const folder = join(dataDir, "projects");
    const fileOf = (projectId: string) => join(folder, `${projectDatabaseName(projectId)}.db`);
    const following = followingStorage(local, {
      locate: (projectId) => migratedTo(fileOf(projectId)),
      findAbandoned: (id) =>
        findAbandonedMigration(fileOf(id), databaseFlags({ kind: id === SHARED_PROJECT_ID ? "shared" : "project", id })),
      away: () => listMigrated(folder),
      openAway: (url) => openDatabase({ storage: url, postgres }, dataDir, now),
    });
    return { ...following, release: local.release };
  }
  if (/^postgres(ql)?:\/\//.test(storage)) {
    const { postgresStorage } = await import("../stores/postgres/storage.ts"); // only those who use it pay for loading pg
    return postgresStorage({ url: storage, now, poolMax: postgres.poolSize ?? POOL_SIZES.poolSize });
  }
  throw new CairnError(
    "invalid_input",
    `Unknown storage ${JSON.stringify(storage.slice(0, 20))}: use "sqlite", "memory" or a postgres:// URL.`,
  );
}

/** What all projects share holds knowledge and nothing else. */
function projectsOnly(storage: Storage): Storage {
  const assertProject = (projectId: string) => {
    if (projectId === SHARED_PROJECT_ID)
      throw new CairnError("invalid_input", 'project_path: "shared" is no project; it holds knowledge only.');
  };
  return {
    ...storage,
    async create(projectId) {
      assertProject(projectId);
      return storage.create(projectId);
    },
    async find(projectId) {
      assertProject(projectId);
      return storage.find(projectId);
    },
  };
}
