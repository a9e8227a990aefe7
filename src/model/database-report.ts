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
  /** The code index of the project, where it is a file of its own. Damage in it does not count for `state`: `cairn code index` builds it again. */
  readonly codeIndex?: { readonly location: string; readonly problems: readonly string[] } | undefined;
}

/** Where a project's database was set aside. It is kept whole; a new one starts empty. */
export interface QuarantineReport {
  readonly projectPath: string;
  readonly location: string;
  readonly movedTo: string;
  readonly problems: readonly string[];
}
