import type { DatabaseName } from "./backup.ts";
import type { RecordRepair } from "./damaged-record.ts";
import { SYSTEM_DEFAULTS } from "./system-rules.ts";

/** When a system has outgrown a file, and what else deserves attention. Every figure can be configured. */
export interface DoctorSettings {
  /** Over how many seconds writes and processes are counted. */
  readonly windowSeconds: number;
  readonly processesMax: number;
  /** The write budget of a component: `systems.commits_per_second`. */
  readonly commitsPerSecond: number;
  /** The write-ahead log included. */
  readonly sizeMaxBytes: number;
  /** Within how many seconds a system must be back. */
  readonly rtoSeconds: number;
  /** A requirement below this wants a server whatever is measured. */
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

/** The conditions under which a system should move to PostgreSQL. */
export const TRIGGERS = ["processes", "write_rate", "size", "rto", "compliance"] as const;
export type TriggerName = (typeof TRIGGERS)[number];

/** One condition under which a system should be migrated to PostgreSQL, as measured. */
export interface Trigger {
  readonly name: TriggerName;
  readonly fired: boolean;
  /** Absent where it was not measured. */
  readonly measured?: number | undefined;
  readonly limit: number;
  /** The figures in words. */
  readonly message: string;
}

/** What was measured of one system. */
export interface SystemMeasures {
  /** Processes that wrote in the window or have the file open now, `<id>@<machine>`. */
  readonly processes: readonly string[];
  /** Commits per second of the busiest component, all processes together. */
  readonly commitsPerSecond: number;
  readonly busiestComponent?: string | undefined;
  /** The window that was asked for. */
  readonly windowSeconds: number;
  readonly bytes: number;
  /** How long a trial restore took; absent when none was made. */
  readonly rtoSeconds?: number | undefined;
}

/** The triggers of one system. */
export interface SystemReport {
  readonly systemId: string;
  readonly location: string;
  readonly triggers: readonly Trigger[];
  /** What helps; absent when nothing fired. */
  readonly command?: string | undefined;
}

export type HealthCheck =
  | "integrity"
  | "records"
  | "schema"
  | "size"
  | "disk"
  | "leftovers"
  | "leases"
  | "embeddings"
  | "snapshots"
  | "recovery"
  | "migrations"
  | "storage"
  | "permissions"
  | "configuration";

/** A path with permissions that are too wide. */
export interface ExposedPath {
  readonly path: string;
  /** In words that follow the path. */
  readonly problem: string;
  /** The arguments of the chmod that helps, without the path; absent where chmod does not help. */
  readonly chmod?: string | undefined;
}

/** Something that deserves attention. A note can wait; a problem makes the report unhealthy. */
export interface Finding {
  readonly check: HealthCheck;
  readonly severity: "problem" | "note";
  /** The database, folder or run that is meant. */
  readonly subject: string;
  readonly message: string;
  /** What helps. */
  readonly command?: string | undefined;
}

export interface DatabaseSize extends DatabaseName {
  readonly location: string;
  readonly bytes: number;
}

/** What a repair did in one project's database. */
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
  /** What a repair did, by database; absent when none was asked for. */
  readonly repairs?: readonly DatabaseRepair[] | undefined;
  /** What was looked at. */
  readonly checks: readonly HealthCheck[];
}
