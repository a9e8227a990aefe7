import type { DamagedRecord } from "./damaged-record.ts";

/** What a look through a project's database found. */
export interface DatabaseReport {
  readonly projectPath: string;
  /** The file or schema. */
  readonly location: string;
  readonly state: "absent" | "sound" | "damaged";
  /** What is wrong with the file or schema itself, in the database's own words, at most a hundred: a backup helps. */
  readonly problems: readonly string[];
  /** What is wrong with single records and derived data: `cairn doctor --repair` helps. */
  readonly damaged: readonly DamagedRecord[];
  readonly stale: readonly string[];
  readonly quarantined: number;
}

/** Where a project's database was set aside. It is kept whole; a new one starts empty. */
export interface QuarantineReport {
  readonly projectPath: string;
  readonly location: string;
  readonly movedTo: string;
  readonly problems: readonly string[];
}
