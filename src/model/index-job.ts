/** The result of one file of a batch. */
export interface FileOutcome {
  readonly path: string;
  /** `partial`: searchable, but indexed incompletely, so the next index run retries it. `failed`: the previous chunks stay. */
  readonly status: "indexed" | "unchanged" | "renamed" | "partial" | "failed";
  readonly chunks?: number | undefined;
  readonly reason?: string | undefined;
  /** Secrets that were removed from it. */
  readonly redacted?: readonly { readonly kind: string; readonly count: number }[] | undefined;
}

export interface Rename {
  readonly from: string;
  readonly to: string;
}

/** A validated and hashed file without secrets. It may be stored anywhere until it is indexed. */
export interface PreparedFile {
  readonly path: string;
  /** Without secrets. */
  readonly content: string;
  /** The hash of the content as it was sent. */
  readonly contentHash: string;
  readonly bytes: number;
  readonly language: string;
  readonly redacted: readonly { readonly kind: string; readonly count: number }[];
}

/** A refused file, with the reason. */
export interface RefusedFile {
  readonly path: string;
  readonly refused: string;
}

/** All paths of the project in a range, so that a long list can be sent in self-contained pages: after `after`, up to and including `until`. */
export interface ManifestPage {
  readonly manifest: readonly string[];
  readonly after?: string | undefined;
  readonly until?: string | undefined;
}

/** The work of an index job: a batch of files, or a page of the manifest of a full index. */
export type IndexWork = { readonly projectPath: string } & (
  | { readonly kind: "files"; readonly files: readonly (PreparedFile | RefusedFile)[]; readonly renames: readonly Rename[] }
  | ({ readonly kind: "manifest" } & ManifestPage)
);

export interface IndexResult {
  readonly files: readonly FileOutcome[];
  /** The number of embedded texts. */
  readonly embeddedTexts: number;
  /** Why some chunks have no vector yet; they are found by keyword, and embedded later. */
  readonly notEmbedded?: string | undefined;
  /** The number of files that are missing from the manifest, and the first of their paths. */
  readonly removed: number;
  readonly removedPaths: readonly string[];
  /** The number of removed files whose content is now at another path. */
  readonly renamed: number;
}

export type IndexJobStatus = "pending" | "running" | "completed" | "partial" | "failed" | "cancelled";

export interface IndexJob {
  readonly id: string;
  readonly projectPath: string;
  readonly kind: IndexWork["kind"];
  readonly status: IndexJobStatus;
  readonly acceptedAt: string;
  readonly startedAt?: string | undefined;
  readonly finishedAt?: string | undefined;
  readonly result?: IndexResult | undefined;
  /** Why it failed, as a message. */
  readonly reason?: string | undefined;
}

export function isFinished({ status }: Pick<IndexJob, "status">): boolean {
  return status !== "pending" && status !== "running";
}

/** The outcome of an index job. */
export type IndexOutcome = Pick<IndexJob, "status" | "result" | "reason">;
