import { databaseLabel } from "../model/backup.ts";
import type { DatabaseRepair, DoctorReport, DoctorSettings, ExposedPath, Finding, HealthCheck, SystemReport } from "../model/doctor.ts";
import { CairnError } from "../model/errors.ts";
import { VERSION } from "../model/version.ts";
import type { BackupStore, LongCall } from "../ports/backup-store.ts";
import type { Clock } from "../ports/clock.ts";
import type { HealthProbe, ProbedDatabase } from "../ports/health-probe.ts";
import type { RunCatalog } from "../ports/run-store.ts";
import type { Storage } from "../ports/storage.ts";
import { redactMessage } from "../text/redact-message.ts";
import {
  databaseFindings,
  diskFindings,
  embeddingFindings,
  leaseFindings,
  leftoverFindings,
  migratedFindings,
  migrationFindings,
  permissionFindings,
} from "./findings.ts";
import { recordFindings, repairAll } from "./record-findings.ts";
import { triggersOf } from "./triggers.ts";

/** Options of one examination by the doctor. */
export interface Examination extends LongCall {
  /** Without reading whole databases and without a trial restore. */
  readonly quick?: boolean | undefined;
  /** Sets damaged records aside and builds derived data again, before anything is reported. */
  readonly repair?: boolean | undefined;
}

/** Says whether a system has outgrown its file, and what else deserves attention. Changes nothing unless `repair` is set. */
export interface Doctor {
  examine(options?: Examination): Promise<DoctorReport>;
  /** Only the conditions of the systems, without a trial restore: what metrics tell. */
  systems(): Promise<readonly SystemReport[]>;
}

export interface DoctorDeps {
  readonly storage: Storage;
  readonly runs: RunCatalog;
  /** Absent where there is nothing to look at from outside. */
  readonly probe?: HealthProbe | undefined;
  /** Absent where databases are no files. */
  readonly backups?: BackupStore | undefined;
  readonly settings: DoctorSettings;
  readonly now: Clock;
  /** Paths that others than their owner can write, or read where they hold secrets. */
  readonly exposedPaths?: (() => readonly ExposedPath[]) | undefined;
  /** Told what an examination found out about the systems. */
  readonly onSystems?: ((reports: readonly SystemReport[]) => void) | undefined;
}

export function doctor({ storage, runs, probe, backups, settings, now, exposedPaths = () => [], onSystems }: DoctorDeps): Doctor {
  /** Seconds of the last trial restore, by system. */
  const trials = new Map<string, number>();
  function systemReport(database: ProbedDatabase, rtoSeconds: number | undefined): SystemReport[] {
    const { kind, id, location, bytes, activity } = database;
    if (kind !== "system" || !activity) return [];
    const triggers = triggersOf({ ...activity, bytes, rtoSeconds }, settings);
    const command = triggers.some(({ fired }) => fired) ? `cairn migrate --to postgres://… --system ${id}` : undefined;
    return [{ systemId: id, location, triggers, command }];
  }

  /** How long it takes to bring a system back, or what is in the way of that. */
  async function trial({ kind, id }: ProbedDatabase, { signal }: Examination): Promise<number | Finding | undefined> {
    try {
      const seconds = await backups?.trialRestore({ kind, id }, { signal });
      if (seconds !== undefined) trials.set(id, seconds);
      return seconds;
    } catch (error) {
      if (!(error instanceof CairnError) || error.code === "cancelled") throw error;
      const message = `A trial restore failed, so a real one would: ${error.message}`;
      return { check: "recovery", severity: "problem", subject: databaseLabel({ kind, id }), message };
    }
  }

  return {
    async examine(options = {}) {
      const { quick = false, repair = false, signal, progress } = options;
      const findings: Finding[] = [];
      const repairs: DatabaseRepair[] = [];
      const unusable = await storageFinding(storage);
      if (unusable) findings.push(unusable);
      const databases = unusable && !backups ? [] : ((await probe?.databases(settings.windowSeconds)) ?? []);
      const systems: SystemReport[] = [];
      for (const [index, database] of databases.entries()) {
        progress?.(index, databases.length, databaseLabel(database));
        signal?.throwIfAborted();
        const problems = quick || database.problem !== undefined ? [] : await probe!.check(database);
        findings.push(...databaseFindings(database, problems, settings));
        const restorable = !quick && database.activity !== undefined && problems.length === 0;
        const tried = restorable ? await trial(database, options) : undefined;
        if (typeof tried === "object") findings.push(tried);
        systems.push(...systemReport(database, typeof tried === "number" ? tried : undefined));
      }
      onSystems?.(systems);
      findings.push(...migrationFindings((await probe?.unfinishedMigrations(databases)) ?? []));
      findings.push(...migratedFindings((await probe?.migrated()) ?? []));
      const largest = Math.max(0, ...databases.map(({ bytes }) => bytes));
      findings.push(...diskFindings((await probe?.disks()) ?? [], largest, settings));
      findings.push(...leftoverFindings((await probe?.leftovers(databases)) ?? [], (await backups?.unusable()) ?? []));
      findings.push(...permissionFindings(exposedPaths()));
      if (!unusable) {
        // Asking for runs where there never were any would make their database.
        const hasRuns = !probe || databases.some(({ kind }) => kind === "runs");
        if (hasRuns) findings.push(...(await leaseFindings(runs, settings, now())));
        // Files are known by now, those that cannot be opened too; asking the storage for all would fail with the first of these.
        const usable = ({ kind, problem, schema }: ProbedDatabase) =>
          kind === "project" && problem === undefined && (schema === "current" || schema === "absent");
        const projects = backups ? databases.filter(usable).map(({ id }) => id) : await storage.projects();
        if (repair) repairs.push(...(await repairAll(storage, projects, signal)));
        if (!quick) findings.push(...(await recordFindings(storage, projects, signal)));
        findings.push(...(await embeddingFindings(storage, projects, settings, signal)));
      }
      const fired = systems.some(({ triggers }) => triggers.some((trigger) => trigger.fired));
      return {
        healthy: !fired && !findings.some(({ severity }) => severity === "problem"),
        checkedAt: now(),
        versions: { cairn: VERSION, node: process.versions.node, database: unusable ? "unknown" : ((await probe?.engine()) ?? "memory") },
        databases: databases.map(({ kind, id, location, bytes }) => ({ kind, id, location, bytes })),
        systems,
        findings: findings.map((finding) => ({ ...finding, message: redactMessage(finding.message) })),
        ...(repair && { repairs }),
        checks: CHECKS.filter((check) => !(quick && WHOLE_DATABASE.includes(check))),
      };
    },

    async systems() {
      return ((await probe?.systems(settings.windowSeconds)) ?? []).flatMap((database) => systemReport(database, trials.get(database.id)));
    },
  };
}

/** Left out of a quick examination. */
const WHOLE_DATABASE: readonly HealthCheck[] = ["integrity", "records", "recovery"];

const CHECKS: readonly HealthCheck[] = [
  "storage",
  "migrations",
  "integrity",
  "records",
  "schema",
  "size",
  "disk",
  "leftovers",
  "permissions",
  "leases",
  "embeddings",
  "snapshots",
  "recovery",
];

async function storageFinding(storage: Storage): Promise<Finding | undefined> {
  try {
    await storage.check();
    return undefined;
  } catch (error) {
    return { check: "storage", severity: "problem", subject: "storage", message: (error as Error).message };
  }
}
