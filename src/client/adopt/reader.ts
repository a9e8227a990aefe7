import type { Redact } from "../../text/redact.ts";
import type { ForeignDatabase } from "./foreign-database.ts";
import type { SessionDigest } from "./session-digest.ts";

/** The tools whose sessions and notes can be adopted, in the order in which they are read. */
export const ADOPT_TOOLS = ["claude-code", "codex", "gemini", "opencode", "claude-mem", "basic-memory", "memory-md"] as const;
export type AdoptTool = (typeof ADOPT_TOOLS)[number];

/** A session of an agent: becomes one checkpoint in the project of its folder. */
export interface SessionItem {
  readonly type: "session";
  /** Identifies the session within its tool, on every run. */
  readonly sessionId: string;
  readonly digest: SessionDigest;
}

/** A note: becomes one knowledge record. */
export interface NoteItem {
  readonly type: "note";
  /** Identifies the note within its unit, on every run. */
  readonly key: string;
  /** The folder of the note's project; absent for notes that belong to no project, which become shared knowledge. */
  readonly folder?: string | undefined;
  readonly title: string;
  readonly text: string;
  readonly category: string;
  readonly createdAt: string;
  readonly updatedAt?: string | undefined;
}

/** A part that was not read, with the reason. */
export interface ProblemItem {
  readonly type: "problem";
  readonly path: string;
  readonly problem: string;
}

export type AdoptItem = SessionItem | NoteItem | ProblemItem;

/** A file or a database of a tool. It is read again only when its fingerprint has changed. */
export interface AdoptUnit {
  readonly path: string;
  readonly bytes: number;
  /** Changes whenever the content may have changed. */
  readonly fingerprint: string;
  /** Whether its notes replace the notes that were adopted from it before. False if its notes only ever grow. */
  readonly replaces?: boolean;
  /** Yields its content in bounded memory. Raises only an abort and errors of this machine, such as a full disk. */
  read(signal: AbortSignal): AsyncIterable<AdoptItem>;
}

export interface FoundUnits {
  readonly units: readonly AdoptUnit[];
  readonly problems: readonly ProblemItem[];
}

/** The machine on which the tools are looked for. */
export interface AdoptHost {
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The folder of the caller's project. */
  readonly folder: string;
  /** A private folder for copies of databases. */
  readonly scratch: string;
  /** Removes secrets, except the values of `redaction.allow`. */
  readonly redact: Redact;
  /** Opens a copy of a database for reading. */
  readonly openDatabase: (path: string) => Promise<ForeignDatabase>;
}

/**
 * Reads the data of one tool. A reader opens regular files only, follows no symbolic link below the tool's folder, executes nothing,
 * and never writes to the tool's files. A format that it does not know becomes a problem, never a guess.
 */
export interface AdoptReader {
  readonly tool: AdoptTool;
  /** Lists what the tool has on this machine, sorted by path. Nothing is read yet except directories and small index files. */
  find(host: AdoptHost, signal: AbortSignal): Promise<FoundUnits>;
}
