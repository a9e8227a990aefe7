import { isAbsolute, join } from "node:path";
import type { Redact } from "../../text/redact.ts";
import { findDecisions } from "./find-decisions.ts";
import { ADOPT_LIMITS } from "./limits.ts";

/** One fact of a transcript, in the terms of no particular tool. */
export type SessionEntry =
  | {
      readonly type: "about";
      readonly folder?: string | undefined;
      readonly branch?: string | undefined;
      readonly version?: string | undefined;
    }
  | { readonly type: "request"; readonly text: string }
  | { readonly type: "answer"; readonly text: string }
  | { readonly type: "file"; readonly path: string }
  | { readonly type: "time"; readonly at: string };

/** What a later session needs to know of an earlier one. */
export interface SessionDigest {
  /** The working directory of the session. */
  readonly folder?: string | undefined;
  /** The branch at the end of the session. */
  readonly branch?: string | undefined;
  /** The version of the tool that wrote the session last. */
  readonly version?: string | undefined;
  /** The first request of the user; absent if there was none. */
  readonly goal?: string | undefined;
  /** The last requests after the first, oldest first. */
  readonly requests: readonly string[];
  /** The last text of the agent. */
  readonly lastState: string;
  /** Files that were written, the most recent last. */
  readonly files: readonly string[];
  /** The number of all files that were written. */
  readonly fileCount: number;
  readonly decisions: readonly string[];
  readonly startedAt?: string | undefined;
  readonly endedAt?: string | undefined;
}

const REQUESTS = 4;
const FILES = 40;
const FILES_COUNTED = 10_000;
const DECISIONS = 12;
const PATH_CHARS = 1_000;

/** Collects the digest of a session entry by entry, so that a transcript of any length takes bounded memory. */
export function sessionDigest(redact: Redact): { add(entry: SessionEntry): void; value(): SessionDigest } {
  const about: { folder?: string | undefined; branch?: string; version?: string } = {};
  let goal: string | undefined;
  const requests: string[] = [];
  let lastState = "";
  const files = new Set<string>();
  const decisions = new Set<string>();
  let startedAt: string | undefined;
  let endedAt: string | undefined;

  const addDecisions = (text: string) => {
    for (const decision of findDecisions(text, redact)) {
      decisions.delete(decision); // the most recent last
      decisions.add(decision);
      if (decisions.size > DECISIONS) decisions.delete(first(decisions));
    }
  };

  return {
    add(entry) {
      if (entry.type === "time") {
        if (startedAt === undefined || entry.at < startedAt) startedAt = entry.at;
        if (endedAt === undefined || entry.at > endedAt) endedAt = entry.at;
      } else if (entry.type === "about") {
        about.folder ??= entry.folder; // an agent may change its directory; the session belongs to the first
        if (entry.branch) about.branch = entry.branch;
        if (entry.version) about.version = entry.version;
      } else if (entry.type === "file") {
        const given = entry.path.slice(0, PATH_CHARS);
        const path = about.folder === undefined || isAbsolute(given) ? given : join(about.folder, given); // so that a file counts once
        files.delete(path);
        if (files.size < FILES_COUNTED) files.add(path);
      } else {
        const text = entry.text.slice(0, ADOPT_LIMITS.textChars).trim();
        if (text === "") return;
        addDecisions(text);
        if (entry.type === "answer") lastState = text;
        else if (goal === undefined) goal = text;
        else if (text !== requests.at(-1) && requests.push(text) > REQUESTS) requests.shift();
      }
    },
    value: () => ({
      ...about,
      goal,
      requests: [...requests],
      lastState,
      files: [...files].slice(-FILES),
      fileCount: files.size,
      decisions: [...decisions],
      startedAt,
      endedAt,
    }),
  };
}

/** Returns the digest of a complete list of entries. */
export function digestOf(entries: Iterable<SessionEntry>, redact: Redact): SessionDigest {
  const digest = sessionDigest(redact);
  for (const entry of entries) digest.add(entry);
  return digest.value();
}

function first(set: ReadonlySet<string>): string {
  return set.values().next().value ?? "";
}
