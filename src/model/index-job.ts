/** What one file of a batch came to. */
export interface FileOutcome {
  readonly path: string;
  /** `partial`: searchable, but not read as it should have been, so that it is never unchanged. `failed`: the older chunks stay. */
  readonly status: "indexed" | "unchanged" | "renamed" | "partial" | "failed";
  readonly chunks?: number | undefined;
  readonly reason?: string | undefined;
  /** Secrets that were taken out of it. */
  readonly redacted?: readonly { readonly kind: string; readonly count: number }[] | undefined;
}

export interface Rename {
  readonly from: string;
  readonly to: string;
}

/** A file that was checked, hashed and freed of secrets: it may be kept anywhere until it is indexed. */
export interface PreparedFile {
  readonly path: string;
  /** Without secrets. */
  readonly content: string;
  /** Of the content as it was sent. */
  readonly contentHash: string;
  readonly bytes: number;
  readonly language: string;
  readonly redacted: readonly { readonly kind: string; readonly count: number }[];
}

/** A file that cannot be taken in, and why. */
export interface RefusedFile {
  readonly path: string;
  readonly refused: string;
}

/** All paths of the project in a range, so that a long list can come in pages of which each is whole: after `after`, up to and with `until`. */
export interface ManifestPage {
  readonly manifest: readonly string[];
  readonly after?: string | undefined;
  readonly until?: string | undefined;
}

/** What waits in the queue: a batch of files, or what is left of the project after an index. */
export type IndexWork = { readonly projectPath: string } & (
  | { readonly kind: "files"; readonly files: readonly (PreparedFile | RefusedFile)[]; readonly renames: readonly Rename[] }
  | ({ readonly kind: "manifest" } & ManifestPage)
);

export interface IndexResult {
  readonly files: readonly FileOutcome[];
  /** How many texts went to the embedding model. */
  readonly embeddedTexts: number;
  /** Why some chunks have no vector yet; they are found by keyword, and embedded later. */
  readonly notEmbedded?: string | undefined;
  /** Files that a manifest showed to be gone: how many, and the first of them. */
  readonly removed: number;
  readonly removedPaths: readonly string[];
  /** Of these, those whose content is at another path now. */
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
  /** Why it failed, in words for a person. */
  readonly reason?: string | undefined;
}

export function isFinished({ status }: Pick<IndexJob, "status">): boolean {
  return status !== "pending" && status !== "running";
}

/** How a piece of work ended. */
export type IndexOutcome = Pick<IndexJob, "status" | "result" | "reason">;
