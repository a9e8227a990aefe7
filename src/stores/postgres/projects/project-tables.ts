import type { PostgresTx, WriteOptions } from "../driver/driver.ts";
import type { ProjectPart } from "./project-schema.ts";
import type { TermStatistics } from "./term-statistics.ts";

/** One project's schema. */
export interface ProjectTables {
  /** The schema that has pgvector, quoted. */
  readonly pgvector: string;
  /** Up to this many records a search compares all of them. */
  readonly exactMax: number;
  readonly statistics: TermStatistics;
  read<T>(work: (tx: PostgresTx) => Promise<T>): Promise<T>;
  /** Runs VACUUM, which does not block other processes, and returns the freed bytes. */
  vacuum(names: readonly string[]): Promise<number>;
  write<T>(work: (tx: PostgresTx) => Promise<T>, options?: WriteOptions): Promise<T>;
  /** Returns whether the tables of these parts exist. Needs no query once they do. */
  has(tx: PostgresTx, ...parts: readonly ProjectPart[]): Promise<boolean>;
  /** Returns the tables of these parts together. */
  part(...parts: readonly ProjectPart[]): PartTables;
}

/** Tables of a project that its first use creates. */
export interface PartTables {
  /** Returns `absent` where the tables do not exist. */
  read<T>(absent: T, work: (tx: PostgresTx) => Promise<T>): Promise<T>;
  /** Creates the tables if necessary. */
  write<T>(work: (tx: PostgresTx) => Promise<T>, options?: WriteOptions): Promise<T>;
  /** Changes existing rows: where the tables do not exist, it creates none and returns `absent`. */
  change<T>(absent: T, work: (tx: PostgresTx) => Promise<T>, options?: WriteOptions): Promise<T>;
}
