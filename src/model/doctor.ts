import type { DatabaseName } from "./backup.ts";
import type { RecordRepair } from "./damaged-record.ts";
import { SYSTEM_DEFAULTS } from "./system-rules.ts";

/** Thresholds of the doctor. All of them are settings. */
export interface DoctorSettings {
  /** Seconds over which writes and processes are counted. */
  readonly windowSeconds: number;
  readonly processesMax: number;
  /** The write budget of a component: `systems.commits_per_second`. */
  readonly commitsPerSecond: number;
  /** The write-ahead log included. */
  readonly sizeMaxBytes: number;
  /** Seconds within which a system must be restored (recovery time objective). */
  readonly rtoSeconds: number;
  /** An objective below this many seconds needs a server, whatever a trial restore measures. */
  readonly rtoFloorSeconds: number;
  readonly compliance: { readonly centralBackup: boolean; readonly pitr: boolean; readonly auditLog: boolean };
  readonly freeDiskMinBytes: number;
  readonly embeddingBacklogMax: number;
  readonly staleLeaseSeconds: number;
}

export const DOCTOR_DEFAULTS: DoctorSettings = {
  windowSeconds: 60,
  processesMax: 1,
  commitsPerSecond: SYSTEM_DEFAULTS.commitsPerSecond,
  sizeMaxBytes: 1_000_000_000,
  rtoSeconds: 30,
  rtoFloorSeconds: 10,
  compliance: { centralBackup: false, pitr: false, auditLog: false },
  freeDiskMinBytes: 1_000_000_000,
  embeddingBacklogMax: 1_000,
  staleLeaseSeconds: 300,
};

/** The conditions under which a system should be migrated to PostgreSQL. */
export const TRIGGERS = ["processes", "write_rate", "size", "rto", "compliance"] as const;
export type TriggerName = (typeof TRIGGERS)[number];

/** One condition under which a system should be migrated to PostgreSQL, as measured. */
export interface Trigger {
  readonly name: TriggerName;
  readonly fired: boolean;
  /** Absent where it was not measured. */
  readonly measured?: number | undefined;
  readonly limit: number;
  /** The measured value and the limit, for people. */
  readonly message: string;
}

/** Measurements of one system. */
export interface SystemMeasures {
  /** Processes that wrote in the window or have the file open now, `<id>@<machine>`. */
  readonly processes: readonly string[];
  /** Commits per second of the busiest component, all processes together. */
  readonly commitsPerSecond: number;
  readonly busiestComponent?: string | undefined;
  /** The length of the window. */
  readonly windowSeconds: number;
  readonly bytes: number;
  /** Seconds that a trial restore took; absent when none was made. */
  readonly rtoSeconds?: number | undefined;
}

/** The triggers of one system. */
export interface SystemReport {
  readonly systemId: string;
  readonly location: string;
  readonly triggers: readonly Trigger[];
  /** The command that migrates the system; absent when no trigger fired. */
  readonly command?: string | undefined;
}

/** Everything that the doctor checks, in the order of its report. `configuration` and `projects` are checked on the client side. */
export const HEALTH_CHECKS = [
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
  "configuration",
  "projects",
] as const;
export type HealthCheck = (typeof HEALTH_CHECKS)[number];

/** The checks of the client side, which a server cannot make. */
export const CLIENT_CHECKS: readonly HealthCheck[] = ["configuration", "projects"];

/** The checks that a quick report omits, because they read whole databases. */
export const WHOLE_DATABASE_CHECKS: readonly HealthCheck[] = ["integrity", "records", "recovery"];

/** A path that users other than its owner can write, or read although it holds secrets. */
export interface ExposedPath {
  readonly path: string;
  /** Follows the path in the message. */
  readonly problem: string;
  /** The arguments of the chmod that corrects it, without the path; absent where chmod does not help. */
  readonly chmod?: string | undefined;
}

/** A process that embeds with a local model for the others of the data folder. */
export interface EmbeddingLeader {
  readonly model: string;
  readonly pid: number;
}

/** A result of a check. A problem makes the report unhealthy, a note does not. */
export interface Finding {
  readonly check: HealthCheck;
  readonly severity: "problem" | "note";
  /** The database, folder or run. */
  readonly subject: string;
  readonly message: string;
  /** The command that solves it. */
  readonly command?: string | undefined;
}

export interface DatabaseSize extends DatabaseName {
  readonly location: string;
  readonly bytes: number;
}

/** The changes that a repair made in one project's database. */
export interface DatabaseRepair extends RecordRepair {
  /** `project <path>` or `shared`. */
  readonly subject: string;
}

/** The findings of one examination. */
export interface DoctorReport {
  /** No trigger fired and no problem was found. */
  readonly healthy: boolean;
  readonly checkedAt: string;
  readonly versions: { readonly cairn: string; readonly node: string; readonly database: string };
  readonly databases: readonly DatabaseSize[];
  readonly systems: readonly SystemReport[];
  readonly findings: readonly Finding[];
  /** The changes of a repair, by database; absent without `repair`. */
  readonly repairs?: readonly DatabaseRepair[] | undefined;
  /** True if some databases were not checked for lack of time. */
  readonly partial: boolean;
  /** The checks that ran. */
  readonly checks: readonly HealthCheck[];
}
