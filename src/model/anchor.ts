/** What an anchor refers to. `head` is the commit and the branch of the working tree when the record was saved. */
export const ANCHOR_KINDS = ["head", "file", "symbol", "commit", "branch"] as const;
export type AnchorKind = (typeof ANCHOR_KINDS)[number];

/** A part of the code that a record refers to, as it was when the record was saved. */
export interface Anchor {
  readonly kind: AnchorKind;
  /** The path of a file, the name of a symbol or branch, or the id of a commit. */
  readonly value: string;
  /** The file that defines a symbol. */
  readonly path?: string | undefined;
  /** SHA-256 of the file's content, or of the text of the symbol's definition. Absent: it was not found. */
  readonly hash?: string | undefined;
  /** SHA-256 of the content of the file that defines the symbol. */
  readonly content?: string | undefined;
  /** Lines of the symbol's definition. */
  readonly lines?: number | undefined;
  /** The generation of the file in the code index, where the hash comes from the index. */
  readonly generation?: number | undefined;
  /** The branch of `head`. Absent: no branch was checked out. */
  readonly branch?: string | undefined;
}

/** The state of a record, or of one anchor, compared with the code as it is now. */
export const FRESHNESS_STATES = ["fresh", "changed", "gone", "renamed", "other_branch", "unknown"] as const;
export type FreshnessState = (typeof FRESHNESS_STATES)[number];

/** How one anchor compares with the code as it is now. */
export interface AnchorMark {
  readonly kind: AnchorKind;
  readonly value: string;
  readonly state: FreshnessState;
  /** The new path of a renamed file, or of the file that a symbol was moved to. */
  readonly to?: string | undefined;
}

/** Whether a record still matches the code, with the reason. */
export interface Freshness {
  readonly state: FreshnessState;
  /** A few words; absent if the state says everything. */
  readonly reason?: string | undefined;
  /** The commit at which the record was saved. */
  readonly since?: string | undefined;
  /** What was compared: the code index or the working tree. Absent: nothing. */
  readonly checked?: "index" | "working_tree" | undefined;
  readonly anchors: readonly AnchorMark[];
}

/** A call whose records are anchored to code, or compared with it. */
export interface WithCodePath {
  /** The project whose code index is used. Default: the project of the records; empty: none. A linked working tree has an index of its own. */
  readonly codePath?: string | undefined;
}

/** The fields of checkpoints and knowledge that freshness needs. */
export interface Anchored {
  readonly anchors: readonly Anchor[];
  /** The id of the record that replaces this one, or "". */
  readonly supersededBy: string;
  /** Set when the record is read, and never stored. */
  readonly freshness?: Freshness | undefined;
}

/** Returns a record as replaced by another one. */
export function supersede<Record extends Anchored & { readonly revision: number }>(record: Record, by: string): Record {
  return { ...record, supersededBy: by, revision: record.revision + 1 };
}

/** Adds the commit of earlier anchors to new ones: only the client side knows the current one. */
export function withHead(anchors: readonly Anchor[], before: readonly Anchor[]): readonly Anchor[] {
  return [...before.filter(({ kind }) => kind === "head"), ...anchors];
}

/** Reads the stored text of anchors. Returns `undefined` for anything else. */
export function parseAnchors(text: unknown): readonly Anchor[] | undefined {
  if (typeof text !== "string") return undefined;
  try {
    const parsed: unknown = JSON.parse(text);
    return Array.isArray(parsed) && parsed.every(isAnchor) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

function isAnchor(value: unknown): value is Anchor {
  const { kind, value: name } = (value ?? {}) as Partial<Record<keyof Anchor, unknown>>;
  return ANCHOR_KINDS.includes(kind as AnchorKind) && typeof name === "string";
}
