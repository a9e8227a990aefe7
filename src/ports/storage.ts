import type { RecordRepair, RecordReport } from "../model/damaged-record.ts";
import type { DatabaseReport, QuarantineReport } from "../model/database-report.ts";
import type { BoundQuery, Catalogue, SearchBound } from "./catalogue.ts";
import type { CheckpointStore } from "./checkpoint-store.ts";
import type { CodeStore } from "./code-store.ts";
import type { ProjectEvents } from "./event-log.ts";
import type { KnowledgeStore } from "./knowledge-store.ts";
import type { FileOptions } from "./project-files.ts";

/** All stores of one project: one database of its own. */
export interface ProjectStore {
  readonly projectPath: string;
  readonly checkpoints: CheckpointStore;
  readonly knowledge: KnowledgeStore;
  readonly code: CodeStore;
  readonly events: ProjectEvents;
}

export interface CopyOptions extends FileOptions {
  readonly withCode?: boolean | undefined;
  readonly withoutDeleted?: boolean | undefined;
}

/** Measures, checks, repairs and copies the databases of projects. */
export interface ProjectMaintenance {
  /** Returns the size of the project's database; `undefined` where there is none or its size is unknown. */
  sizeBytes(projectPath: string): Promise<number | undefined>;
  /** Checks the whole database for damage and changes nothing. */
  checkProject(projectPath: string): Promise<DatabaseReport>;
  /** Verifies every record and the data derived from records, and changes nothing. A project without a database has no problems. */
  checkRecords(projectPath: string): Promise<RecordReport>;
  /** Moves damaged records to the table `quarantined_records` with their raw content, and rebuilds derived data. */
  repairRecords(projectPath: string): Promise<RecordRepair>;
  /** Sets the whole database aside with these problems as the reason; the next write creates a new one. Raises `not_found`. */
  quarantine(projectPath: string, problems: readonly string[]): Promise<QuarantineReport>;
  /** Erases the whole database with the code index. The next write creates a new one. Raises `not_found`, and `conflict` while it is in use elsewhere. */
  remove(projectPath: string): Promise<void>;
  /**
   * Copies the whole database, as it is at one moment, to a new file that `ProjectFiles` reads; with `withCode`, also the code index, to
   * a file next to it; with `withoutDeleted`, without deleted records. Absent, or false, where the database is no such file. Raises `not_found` if there is no database, and `conflict`
   * if the file exists.
   */
  copyTo?(projectPath: string, file: string, options?: CopyOptions): Promise<boolean>;
  /**
   * Copies the code index that was exported next to this file into the project, unless the project has one. Returns whether it did.
   * Absent where the code index is not a file of its own. Raises `not_found` if none was exported, `conflict` if it is another project's.
   */
  importCode?(projectPath: string, file: string, options?: FileOptions): Promise<boolean>;
}

export interface CatalogueOptions {
  readonly isWanted?: ((projectPath: string) => boolean) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The databases of all projects. The first write creates a project's database; a read never does. The path "shared" names the
 * database that all projects share: it has knowledge only and is not listed.
 */
export interface Storage extends ProjectMaintenance {
  /** Opens the project's database and creates it if necessary. */
  create(projectPath: string): Promise<ProjectStore>;
  /** Returns the project's stores, or `undefined` if nothing was ever stored for it. */
  find(projectPath: string): Promise<ProjectStore | undefined>;
  /** Returns the paths of all projects that have a database. */
  projects(): Promise<readonly string[]>;
  /** Returns the counts of all projects, or of the wanted ones. Counts include every write that was acknowledged before the call. */
  catalogue(options?: CatalogueOptions): Promise<Catalogue>;
  /**
   * Returns bounds of a search in these projects, in few queries. A project without a bound must be searched. Absent where a search of
   * each project costs no more.
   */
  searchBounds?(query: BoundQuery): Promise<readonly SearchBound[]>;
  /** Raises `unavailable` with the reason when the storage cannot be used. */
  check(): Promise<void>;
  close(): Promise<void>;
}
