/** What a look through a project's database found. */
export interface DatabaseReport {
  readonly projectPath: string;
  /** The file or schema. */
  readonly location: string;
  readonly state: "absent" | "sound" | "damaged";
  /** In the database's own words, at most a hundred. */
  readonly problems: readonly string[];
}

/** Where a project's database was set aside. It is kept whole; a new one starts empty. */
export interface QuarantineReport {
  readonly projectPath: string;
  readonly location: string;
  readonly movedTo: string;
  readonly problems: readonly string[];
}
