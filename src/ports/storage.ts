import type { RecordRepair, RecordReport } from "../model/damaged-record.ts";
import type { DatabaseReport, QuarantineReport } from "../model/database-report.ts";
import type { CheckpointStore } from "./checkpoint-store.ts";
import type { CodeStore } from "./code-store.ts";
import type { KnowledgeStore } from "./knowledge-store.ts";
import type { FileOptions } from "./project-files.ts";

/** All stores of one project: one database of its own. */
export interface ProjectStore {
  readonly projectPath: string;
  readonly checkpoints: CheckpointStore;
  readonly knowledge: KnowledgeStore;
  readonly code: CodeStore;
}

/**
 * Where projects live. A project's database is made by its first write; reading never makes one. The id "shared" names the
 * database of all projects together, which holds knowledge only and is not listed.
 */
export interface Storage {
  /** Opens the project's database, making it if need be. */
  create(projectPath: string): Promise<ProjectStore>;
  /** The project's stores, or `undefined` if nothing was ever stored for it. */
  find(projectPath: string): Promise<ProjectStore | undefined>;
  /** The ids of all projects that have a database. */
  projects(): Promise<readonly string[]>;
  /** How many bytes the project's database takes; `undefined` where there is none or nothing to measure. */
  sizeBytes(projectPath: string): Promise<number | undefined>;
  /** Looks through all of the project's database for damage, and changes nothing. */
  checkProject(projectPath: string): Promise<DatabaseReport>;
  /** Verifies every record and what is derived from them, and changes nothing. Nothing is wrong with a project that is not there. */
  checkRecords(projectPath: string): Promise<RecordReport>;
  /** Moves damaged records to the table `quarantined_records` with their raw content, and builds derived data again. */
  repairRecords(projectPath: string): Promise<RecordRepair>;
  /** Sets the project's database aside, whole, with these problems as the reason; the next write makes a new one. Raises `not_found` if there is none. */
  quarantine(projectPath: string, problems: readonly string[]): Promise<QuarantineReport>;
  /**
   * Copies the project's whole database, as it is at one moment, to a new file as `ProjectFiles` has them. Absent, or false, where
   * it is no such file. Raises `not_found` if there is none, and `conflict` if the file is there.
   */
  copyTo?(projectPath: string, file: string, options?: FileOptions): Promise<boolean>;
  /** Raises `unavailable` with the reason when the database cannot be used. */
  check(): Promise<void>;
  close(): Promise<void>;
}
