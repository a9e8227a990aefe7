import { readFileSync } from "node:fs";

/** Descriptors that Node, its threads, the log and short-lived files need before any database or socket is open. */
const OWN_FILES = 64;
/** Below this limit too few databases and connections would be left to work with. */
export const OPEN_FILES_MIN = 2 * OWN_FILES;
/** Assumed where the limit cannot be read; a usual default of Unix systems. */
const OPEN_FILES_FALLBACK = 1_024;
/** A connection in WAL mode holds the database, its log and the index of the log. */
const FILES_PER_CONNECTION = 3;
/** The share of the databases' descriptors that the search thread's connections get. */
const SEARCH_SHARE = 0.4;

let limit: number | undefined;

/** Returns how many files this process may have open at once. Sockets, pipes and threads count too. */
export function openFilesLimit(): number {
  limit ??= readLimit();
  return limit;
}

function readLimit(): number {
  let text: string;
  try {
    text = readFileSync("/proc/self/limits", "utf8");
  } catch {
    return OPEN_FILES_FALLBACK; // not Linux
  }
  const soft = /^Max open files\s+(\S+)/m.exec(text)?.[1];
  return soft === "unlimited" ? Number.MAX_SAFE_INTEGER : Number(soft ?? OPEN_FILES_FALLBACK);
}

/** How the descriptors of a process are shared out. */
export interface OpenFilesBudget {
  /** Databases that may be open at once. */
  readonly databases: number;
  /** Databases that the search thread may have open at once. */
  readonly searched: number;
  /** Connections that a server may accept at once. */
  readonly sockets: number;
}

/** Shares out a limit: what the process itself does not need goes to databases and sockets in equal parts. */
export function openFilesBudget(files = openFilesLimit()): OpenFilesBudget {
  const half = Math.max(0, files - OWN_FILES) / 2;
  const connections = (share: number) => Math.max(1, Math.floor((half * share) / FILES_PER_CONNECTION));
  return { databases: connections(1 - SEARCH_SHARE), searched: connections(SEARCH_SHARE), sockets: Math.max(1, Math.floor(half)) };
}

/** Says what is wrong with a limit so low that calls would fail one by one; `undefined` for a sufficient one. */
export function openFilesProblem(files = openFilesLimit()): string | undefined {
  if (files >= OPEN_FILES_MIN) return undefined;
  return `This process may have ${files} files open at once, and Cairn needs at least ${OPEN_FILES_MIN}. Raise the limit with: ulimit -n 1024`;
}
