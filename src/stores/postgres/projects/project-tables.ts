import type { PostgresTx, WriteOptions } from "../driver/driver.ts";
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
}
