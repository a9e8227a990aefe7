import { databaseLabel } from "../model/backup.ts";
import {
  CLIENT_CHECKS,
  type DoctorReport,
  type DoctorSettings,
  type EmbeddingLeader,
  type ExposedPath,
  type Finding,
  HEALTH_CHECKS,
  type SystemReport,
  WHOLE_DATABASE_CHECKS,
} from "../model/doctor.ts";
import { CairnError } from "../model/errors.ts";
import type { Clock } from "../model/ids.ts";
import { NO_TIME } from "../model/no-time.ts";
import { VERSION } from "../model/version.ts";
import type { BackupStore, LongCall } from "../ports/backup-store.ts";
import type { HealthProbe, ProbedDatabase } from "../ports/health-probe.ts";
import type { RunCatalog } from "../ports/run-store.ts";
import type { Storage } from "../ports/storage.ts";
import { forEachParallel } from "../scheduling/for-each-parallel.ts";
import { redactMessage } from "../text/redact-message.ts";
import {
  databaseFindings,
  diskFindings,
  embedderFindings,
  embeddingFindings,
  leaderFindings,
  leaseFindings,
  leftoverFindings,
  migratedFindings,
  migrationFindings,
  permissionFindings,
} from "./findings.ts";
import { CHECKED_AT_ONCE, recordFindings, repairAll, subjectOf } from "./record-findings.ts";
import { triggersOf } from "./triggers.ts";

/** Options of one report. */
export interface DoctorOptions extends LongCall {
  /** Omits the checks that read whole databases, and the trial restore. */
  readonly quick?: boolean | undefined;
  /** Quarantines damaged records and rebuilds derived data before the report. */
  readonly repair?: boolean | undefined;
}

/** Checks whether a system has outgrown its file and whether every database is intact. Changes nothing without `repair`. */
export interface Doctor {
  examine(options?: DoctorOptions): Promise<DoctorReport>;
  /** Returns only the triggers of the systems, without a trial restore: for metrics. */
  systems(): Promise<readonly SystemReport[]>;
}

export interface DoctorDeps {
  readonly storage: Storage;
  readonly runs: RunCatalog;
  /** Absent for a storage that cannot be inspected, such as memory. */
  readonly probe?: HealthProbe | undefined;
  /** Absent where databases are not files. */
  readonly backups?: BackupStore | undefined;
  readonly settings: DoctorSettings;
  readonly now: Clock;
  /** Returns paths that users other than their owner can write, or read although they hold secrets. */
  readonly exposedPaths?: (() => readonly ExposedPath[]) | undefined;
  /** Returns why the configured embedding model cannot be opened. */
  readonly embedderProblem?: (() => Promise<string | undefined>) | undefined;
  /** Returns the processes that embed with a local model for the others of the data folder. */
  readonly leaders?: (() => readonly EmbeddingLeader[]) | undefined;
  /** Called with the systems of each report. */
  readonly onSystems?: ((reports: readonly SystemReport[]) => void) | undefined;
}

export function doctor(deps: DoctorDeps): Doctor {
  const { storage, runs, probe, backups, settings, now, exposedPaths = () => [], embedderProblem, leaders = () => [], onSystems } = deps;
  /** Seconds of the last trial restore, by system. */
  const restoreSeconds = new Map<string, number>();
  function systemReport(database: ProbedDatabase, rtoSeconds: number | undefined): SystemReport[] {
    const { kind, id, location, bytes, activity } = database;
    if (kind !== "system" || !activity) return [];
    const triggers = triggersOf({ ...activity, bytes, rtoSeconds }, settings);
    const command = triggers.some(({ fired }) => fired) ? `cairn migrate --to postgres://… --system ${id}` : undefined;
    return [{ systemId: id, location, triggers, command }];
  }

  /** Returns the seconds that a trial restore took, or the finding that it failed. */
  async function tryRestore({ kind, id }: ProbedDatabase, { signal }: DoctorOptions): Promise<number | Finding | undefined> {
    try {
      const seconds = await backups?.trialRestore({ kind, id }, { signal });
      if (seconds !== undefined) restoreSeconds.set(id, seconds);
      return seconds;
    } catch (error) {
      if (!(error instanceof CairnError) || error.code === "cancelled") throw error;
      const message = `A trial restore failed, so a real restore would fail too: ${error.message}`;
      return { check: "recovery", severity: "problem", subject: databaseLabel({ kind, id }), message };
    }
  }

  /** Checks each database by itself. */
  async function examineEach(databases: readonly ProbedDatabase[], options: DoctorOptions & LateDatabases) {
    const checked = new Map<ProbedDatabase, { findings: Finding[]; systems: SystemReport[] }>();
    const { signal } = options;
    const late = await forEachParallel(databases, { concurrency: CHECKED_AT_ONCE, signal }, async (database) => {
      options.progress?.(checked.size, databases.length, databaseLabel(database));
      const problems = options.quick || database.problem !== undefined ? [] : await probe!.check(database);
      const findings = [...databaseFindings(database, problems, settings)];
      const restorable = !options.quick && database.activity !== undefined && problems.length === 0;
      const restored = restorable ? await tryRestore(database, options) : undefined;
      if (typeof restored === "object") findings.push(restored);
      checked.set(database, { findings, systems: systemReport(database, typeof restored === "number" ? restored : undefined) });
    });
    for (const database of late) options.onLate(databaseLabel(database));
    const results = databases.flatMap((database) => checked.get(database) ?? []);
    return { findings: results.flatMap(({ findings }) => findings), systems: results.flatMap(({ systems }) => systems) };
  }

  /** Checks what surrounds the databases: migrations, disks, leftover files, permissions and the embedding model. */
  async function examineHost(databases: readonly ProbedDatabase[]): Promise<Finding[]> {
    const largestBytes = Math.max(0, ...databases.map(({ bytes }) => bytes));
    return [
      ...migrationFindings((await probe?.unfinishedMigrations(databases)) ?? []),
      ...migratedFindings((await probe?.migrated()) ?? []),
      ...diskFindings((await probe?.disks()) ?? [], largestBytes, settings),
      ...leftoverFindings((await probe?.leftovers(databases)) ?? [], (await backups?.unusable()) ?? []),
      ...permissionFindings(exposedPaths()),
      ...embedderFindings(await embedderProblem?.()),
      ...leaderFindings(leaders()),
    ];
  }

  /** Checks the content of databases that can be opened: leases, records and embeddings. */
  async function examineContent(databases: readonly ProbedDatabase[], { quick, repair, signal, onLate }: DoctorOptions & LateDatabases) {
    const findings: Finding[] = [];
    // Listing runs would create their database.
    const hasRuns = !probe || databases.some(({ kind }) => kind === "runs");
    if (hasRuns) findings.push(...(await leaseFindings(runs, settings, now())));
    // The probe lists files that cannot be opened too; storage.projects() would fail at the first of them.
    const isUsable = ({ kind, problem, schema }: ProbedDatabase) =>
      kind === "project" && problem === undefined && (schema === "current" || schema === "absent");
    const projects = backups ? databases.filter(isUsable).map(({ id }) => id) : await storage.projects();
    const visit = { signal, onLate: (projectId: string) => onLate(subjectOf(projectId)) };
    const repairs = repair ? await repairAll(storage, projects, visit) : [];
    if (!quick) findings.push(...(await recordFindings(storage, projects, visit)));
    findings.push(...(await embeddingFindings(storage, projects, settings, visit)));
    return { findings, repairs };
  }

  return {
    async examine(options = {}) {
      const { quick = false, repair = false } = options;
      const unusable = await storageFinding(storage);
      const databases = unusable && !backups ? [] : ((await probe?.databases(settings.windowSeconds)) ?? []);
      const late = new Set<string>();
      const bounded = { ...options, onLate: (subject: string) => void late.add(subject) };
      const each = await examineEach(databases, bounded);
      onSystems?.(each.systems);
      const host = await examineHost(databases);
      const content = unusable ? { findings: [], repairs: [] } : await examineContent(databases, bounded);
      const findings = [...(unusable ? [unusable] : []), ...each.findings, ...host, ...content.findings, ...lateFindings(late)];
      const fired = each.systems.some(({ triggers }) => triggers.some((trigger) => trigger.fired));
      return {
        healthy: !fired && !findings.some(({ severity }) => severity === "problem"),
        checkedAt: now(),
        versions: { cairn: VERSION, node: process.versions.node, database: unusable ? "unknown" : ((await probe?.engine()) ?? "memory") },
        databases: databases.map(({ kind, id, location, bytes }) => ({ kind, id, location, bytes })),
        systems: each.systems,
        findings: findings.map((finding) => ({ ...finding, message: redactMessage(finding.message) })),
        ...(repair && { repairs: content.repairs }),
        partial: late.size > 0,
        checks: HEALTH_CHECKS.filter((check) => !CLIENT_CHECKS.includes(check) && !(quick && WHOLE_DATABASE_CHECKS.includes(check))),
      };
    },

    async systems() {
      return ((await probe?.systems(settings.windowSeconds)) ?? []).flatMap((database) =>
        systemReport(database, restoreSeconds.get(database.id)),
      );
    },
  };
}

interface LateDatabases {
  /** Called with each database that was not checked for lack of time. */
  readonly onLate: (subject: string) => void;
}

function lateFindings(late: ReadonlySet<string>): Finding[] {
  if (late.size === 0) return [];
  const message = `${late.size} databases were not checked: ${NO_TIME}. Check each project with: cairn database check`;
  return [{ check: "storage", severity: "problem", subject: "databases", message }];
}

async function storageFinding(storage: Storage): Promise<Finding | undefined> {
  try {
    await storage.check();
    return undefined;
  } catch (error) {
    return { check: "storage", severity: "problem", subject: "storage", message: (error as Error).message };
  }
}
