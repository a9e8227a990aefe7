import type { Backups } from "../admin/backups.ts";
import type { Databases } from "../admin/databases.ts";
import type { Doctor } from "../admin/doctor.ts";
import type { Keys } from "../admin/keys.ts";
import type { Retention } from "../admin/retention.ts";
import type { Stats } from "../admin/stats.ts";
import type { Transfer } from "../admin/transfer.ts";
import type { Checkpoints } from "../checkpoints/service.ts";
import type { IndexJobs } from "../client/jobs/index-jobs.ts";
import type { Indexing } from "../code/indexing.ts";
import type { Code } from "../code/service.ts";
import type { Events } from "../events/service.ts";
import type { Anchors } from "../freshness/anchor-record.ts";
import type { KnowledgeBase } from "../knowledge/service.ts";
import type { MigrationRules, Migrations } from "../migrate/service.ts";
import type { RecentCall } from "../model/recent-call.ts";
import type { Embeddings } from "../recall/embeddings.ts";
import type { Reviews } from "../review/service.ts";
import type { Runs } from "../runs/service.ts";
import type { Systems } from "../systems/service.ts";

/** Everything Cairn can do, as a library. `open()` returns it. */
export interface Cairn {
  readonly checkpoints: Checkpoints;
  readonly knowledge: KnowledgeBase;
  /** Records that no longer match the code. */
  readonly reviews: Reviews;
  readonly code: Code;
  /** Names in records, resolved to the code index. */
  readonly anchors: Anchors;
  /** Code that is accepted at once and indexed in the background. */
  readonly indexing: Indexing;
  /** API keys of the HTTP surface. */
  readonly keys: Keys;
  /** Checks, repairs and quarantines the databases of projects. */
  readonly databases: Databases;
  /** Verified backups of databases, and restoring them. */
  readonly backups: Backups;
  /** Reports systems that have outgrown their files, and other findings. */
  readonly doctor: Doctor;
  /** A project as one file. */
  readonly transfer: Transfer;
  /** Migrates databases between SQLite and PostgreSQL. */
  readonly migrations: Migrations & MigrationRules;
  readonly embeddings: Embeddings;
  /** Erases deleted records at the end of their retention. */
  readonly retention: Retention;
  /** Changes as they happen, of any process. */
  readonly events: Events;
  /** The last calls over HTTP and MCP that this process answered, newest first. */
  readonly calls: { recent(): readonly RecentCall[] };
  /** Counts, sizes and costs. */
  readonly stats: Stats;
  /** Durable runs: see `cairn-memory/runs` for the graphs that make them. */
  readonly runs: Runs;
  /** Inboxes, offsets and snapshots: see `cairn-memory/systems` for the systems that make them. */
  readonly systems: Systems;
  /** Jobs that index folders of this machine. Only the client side has them, and `cairn serve` for its local user. */
  readonly indexJobs?: IndexJobs | undefined;
  /** The ids of all projects that have stored something. */
  projects(): Promise<readonly string[]>;
  /** Raises `unavailable` with the reason when the storage cannot be used. */
  check(): Promise<void>;
  close(): Promise<void>;
}
