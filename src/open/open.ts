import { homedir } from "node:os";
import { join } from "node:path";
import { backups } from "../admin/backups.ts";
import { databases as databaseService } from "../admin/databases.ts";
import { doctor } from "../admin/doctor.ts";
import { keys } from "../admin/keys.ts";
import { retention } from "../admin/retention.ts";
import { stats } from "../admin/stats.ts";
import { transfer } from "../admin/transfer.ts";
import { checkpoints } from "../checkpoints/service.ts";
import { CheckpointOutput } from "../checkpoints/wire-schemas.ts";
import { indexing } from "../code/indexing.ts";
import { parserPool } from "../code/parser-pool.ts";
import { code } from "../code/service.ts";
import { type Events, events } from "../events/service.ts";
import { exposedPaths } from "../files/permissions.ts";
import { anchors, recordAnchorer } from "../freshness/anchor-record.ts";
import { recordMarker } from "../freshness/mark-records.ts";
import { knowledge } from "../knowledge/service.ts";
import { DOCTOR_DEFAULTS } from "../model/doctor.ts";
import { CairnError } from "../model/errors.ts";
import { assertProject, newId, systemClock } from "../model/ids.ts";
import { LIMITS } from "../model/limits.ts";
import { once, onFirstUse, withProperties } from "../model/once.ts";
import { SYSTEM_DEFAULTS } from "../model/system-rules.ts";
import type { Cairn } from "../operations/cairn.ts";
import { toWire } from "../operations/wire.ts";
import { backfiller } from "../recall/backfiller.ts";
import { embeddings } from "../recall/embeddings.ts";
import { reviews } from "../review/service.ts";
import { runs } from "../runs/service.ts";
import { backgroundTasks } from "../scheduling/background-tasks.ts";
import { runPeriodically } from "../scheduling/run-periodically.ts";
import { leaderLease, readLeaders } from "../stores/file/leader-lease.ts";
import { memorySystemStorage } from "../stores/memory/systems.ts";
import { sqliteProjectFiles } from "../stores/sqlite/projects/project-files.ts";
import { systems } from "../systems/service.ts";
import { observeSystems } from "../telemetry/doctor-metrics.ts";
import { observeEmbedding } from "../telemetry/embedding-metrics.ts";
import { recentCalls } from "../telemetry/observe.ts";
import { redactor } from "../text/redact.ts";
import { openEmbedders, type ShareOptions } from "./open-embedders.ts";
import { openKeyStores } from "./open-key-store.ts";
import { openMigrationService } from "./open-migration-service.ts";
import { type OpenContext, type OpenOptions, storageKind } from "./open-options.ts";
import { openStorage } from "./open-storage.ts";
import { openIndexQueue, openMaintenance, openRuns, openSystems } from "./open-stores.ts";
import { defaultStateDir } from "./open-system-storage.ts";
import { postgresPools } from "./postgres-pools.ts";

export type { OpenOptions } from "./open-options.ts";

/** When deleted records are erased whose retention has ended. Short-lived commands end before the first time. */
const UPKEEP = { firstMs: 60_000, everyMs: 3_600_000 };

/** Opens Cairn as a library: every call is validated. Puts the services together; `src/open` chooses the concrete adapters. */
export async function open(options: OpenOptions = {}): Promise<Cairn> {
  const { validateLibrary } = await import("../operations/validate-library.ts");
  return validateLibrary(await openUnvalidated(options));
}

/** Opens Cairn for a surface: `invoke` validates each call, so the schemas of the library need not be loaded. */
export function openUnvalidated(options: OpenOptions): Promise<Cairn> {
  return openServices(contextOf(options));
}

function contextOf(options: OpenOptions): OpenContext {
  const { dataDir = join(homedir(), ".cairn") } = options;
  return {
    options,
    dataDir,
    stateDir: options.stateDir ?? defaultStateDir(),
    backupDir: options.backupDir ?? join(dataDir, "backups"),
    now: options.now ?? systemClock,
    newId: options.newId ?? newId,
    onNotice: options.onNotice ?? ((message) => process.emitWarning(message, "CairnNotice")),
    pools: postgresPools(options.postgres),
  };
}

function deletedDays({ retention: { deletedDays: days = LIMITS.deletedDays } = {} }: OpenOptions): number {
  if (Number.isInteger(days) && days >= 1 && days <= LIMITS.deletedDaysMax) return days;
  throw new CairnError("invalid_input", `retention.deletedDays: must be a whole number from 1 to ${LIMITS.deletedDaysMax}.`);
}

/** Storage in memory is of one process, and leaves no files. */
function shareOptions({ options, dataDir }: OpenContext): ShareOptions | undefined {
  if (options.shareModels === undefined || storageKind(options) === "memory") return undefined;
  const { role, runtimeDir } = options.shareModels;
  return { mayLead: role === "lead", leaseOf: (model) => leaderLease({ dataDir, runtimeDir, model }) };
}

async function openServices(context: OpenContext): Promise<Cairn> {
  const { options, dataDir, now } = context;
  const kind = storageKind(options);
  const redact = redactor(options.redaction);

  const { databases, storage } = await openStorage(context);
  const runStore = await openRuns(context);
  const systemStorage = await openSystems(context);
  const maintenance = await openMaintenance({ databases, runStore, systemStorage }, context);
  const {
    embedders,
    usage,
    sharing,
    problem: embedderProblem,
  } = openEmbedders({ choice: options.embedder, redact, share: shareOptions(context), onNotice: context.onNotice });

  const parsers = parserPool(); // its threads start with the first file that needs one
  const backfill = backfiller({ embedders });
  const background = backgroundTasks();
  const anchorRecord = recordAnchorer({ storage, redact });
  const rules = { now, deletedDays: deletedDays(options) };
  const retentionService = once(() => retention({ storage, runs: runStore, ...rules }));
  const stopUpkeep = runPeriodically(UPKEEP, () => background.start((signal) => retentionService().upkeep({ signal })));
  const shared = {
    storage,
    embedders,
    backfiller: backfill,
    ...rules,
    newId: context.newId,
    redact,
    anchorRecord,
    markRecords: recordMarker({ storage, limitMs: options.freshness?.limitMs ?? LIMITS.freshnessMs }),
  };
  // A command uses one service. The others are built on first use, so that it does not load their modules.
  const checkpointService = once(() => checkpoints(shared));
  const knowledgeService = once(() => knowledge(shared));
  const codeService = once(() => code({ ...shared, parsers, redact: redactor({ ...options.redaction, keepLines: true }) }));
  const queue = await openIndexQueue(context, (work, signal) => codeService().perform(work, { signal }));
  const keyStores = await openKeyStores(context);

  let eventService: Events | undefined;
  const stopEmbeddingMetrics = observeEmbedding(usage, sharing);
  const systemMetrics = observeSystems(() => doctorService().systems());
  const doctorService = once(() =>
    doctor({
      ...{ storage, runs: runStore, ...maintenance, now, embedderProblem, leaders: () => (kind === "memory" ? [] : readLeaders(dataDir)) },
      settings: {
        ...DOCTOR_DEFAULTS,
        ...options.doctor,
        commitsPerSecond: options.systems?.commitsPerSecond ?? SYSTEM_DEFAULTS.commitsPerSecond,
      },
      exposedPaths: () => (kind === "memory" ? [] : exposedPaths([dataDir, context.stateDir, context.backupDir])),
      onSystems: (found) => systemMetrics.remember(found),
    }),
  );
  const services = onFirstUse<Services>({
    checkpoints: checkpointService,
    knowledge: knowledgeService,
    reviews: () => reviews({ checkpoints: checkpointService(), knowledge: knowledgeService() }),
    code: codeService,
    anchors: () => anchors(anchorRecord),
    indexing: () => indexing({ code: codeService(), queue }),
    embeddings: () =>
      embeddings({
        embedders,
        find: async ({ projectPath, collection }) => (await storage.find(projectPath))?.[collection].embeddings,
        checkRecords: (projectPath) => storage.checkRecords(projectPath),
        inBackground: background.start, // what is left undone shows in the list of versions
      }),
    runs: () => runs({ store: runStore, now, newId: context.newId, settings: options.runs }),
    systems: () =>
      systems({
        ...{ storage: systemStorage, now, newId: context.newId, settings: options.systems ?? {} },
        scratch: async () => memorySystemStorage(),
      }),
    keys: () => keys({ ...keyStores, now, inBackground: background.start }),
    databases: () => databaseService({ storage, queue }),
    backups: () => backups({ store: maintenance.backups, storage: kind }),
    doctor: doctorService,
    transfer: () =>
      transfer({
        storage,
        files: sqliteProjectFiles({ now }),
        checkpoints(projectPath, records, { signal }) {
          assertProject(projectPath);
          return checkpointService().import(
            { projectPath, records: records.map((record) => toWire(CheckpointOutput, record)) },
            { signal },
          );
        },
        knowledge: (projectPath, records, { signal }) => knowledgeService().importRecords({ database: projectPath, records }, { signal }),
        cleanCode: (projectPath) => codeService().clean({ projectPath }),
      }),
    retention: retentionService,
    events: () => {
      eventService = events({ storage, runs: runStore, now });
      return eventService;
    },
    migrations: () => openMigrationService(context),
    stats: () => stats({ storage, usage }),
  });

  return withProperties(services, {
    calls: { recent: recentCalls },
    projects: () => storage.projects(),
    async check() {
      await storage.check();
      if ("check" in systemStorage) await systemStorage.check();
    },
    async close() {
      eventService?.close();
      stopEmbeddingMetrics();
      systemMetrics.stop();
      stopUpkeep();
      background.abort();
      for (const part of [queue, backfill, parsers, embedders, background, runStore, systemStorage, storage, context.pools])
        await part.close();
    },
  });
}

type Services = Omit<Cairn, "calls" | "projects" | "check" | "close">;
