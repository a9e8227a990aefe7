import type { Backups } from "../admin/backups.ts";
import type { Databases } from "../admin/databases.ts";
import type { Doctor } from "../admin/doctor.ts";
import type { Keys } from "../admin/keys.ts";
import type { Stats } from "../admin/stats.ts";
import type { Transfer } from "../admin/transfer.ts";
import type { Checkpoints } from "../checkpoints/service.ts";
import type { IndexJobs } from "../client/jobs/index-jobs.ts";
import type { Indexing } from "../code/indexing.ts";
import type { Code } from "../code/service.ts";
import type { KnowledgeBase } from "../knowledge/service.ts";
import type { MigrationRules, Migrations } from "../migrate/service.ts";
import type { Embeddings } from "../recall/embeddings.ts";
import type { Runs } from "../runs/service.ts";
import type { Systems } from "../systems/service.ts";

/** Everything Cairn can do, as a library. `open()` gives one. */
export interface Cairn {
  readonly checkpoints: Checkpoints;
  readonly knowledge: KnowledgeBase;
  readonly code: Code;
  /** Code that is accepted at once and indexed in the background. */
  readonly indexing: Indexing;
  /** Who may call over HTTP. */
  readonly keys: Keys;
  /** What to do when a project's database may be damaged. */
  readonly databases: Databases;
  /** Copies of databases that can be trusted, and the way back from them. */
  readonly backups: Backups;
  /** Whether a system has outgrown its file, and what else deserves attention. */
  readonly doctor: Doctor;
  /** A project as one file. */
  readonly transfer: Transfer;
  /** Moves databases between SQLite and PostgreSQL. */
  readonly migrations: Migrations & MigrationRules;
  readonly embeddings: Embeddings;
  /** Counts, sizes and costs. */
  readonly stats: Stats;
  /** Durable runs: see `cairn-memory/runs` for the graphs that make them. */
  readonly runs: Runs;
  /** Inboxes, offsets and snapshots: see `cairn-memory/systems` for the systems that make them. */
  readonly systems: Systems;
  /** Jobs that index trees of this machine. Only the edges beside the files have it, never a server. */
  readonly indexJobs?: IndexJobs | undefined;
  /** The ids of all projects that have stored something. */
  projects(): Promise<readonly string[]>;
  /** Raises `unavailable`, saying why, when the storage cannot be used. */
  check(): Promise<void>;
  close(): Promise<void>;
}
