import { readFileSync } from "node:fs";

/** Descriptors that Node, its threads, the log and short-lived files need before any database or socket is open. */
const OWN_FILES = 64;
/** The smallest limit that leaves enough descriptors for databases and connections. */
export const OPEN_FILES_MIN = 2 * OWN_FILES;
/** Assumed if the limit cannot be read: a common default of Unix systems. */
const OPEN_FILES_FALLBACK = 1_024;
/** A connection in WAL mode opens the database, the WAL and the shared-memory file. */
const FILES_PER_CONNECTION = 3;
/** The share of the database descriptors for the connections of the search thread. */
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

/** The file descriptors of a process, by use. */
export interface OpenFilesBudget {
  /** Databases that may be open at once. */
  readonly databases: number;
  /** Databases that the search thread may have open at once. */
  readonly searched: number;
  /** Connections that a server may accept at once. */
  readonly sockets: number;
}

/** Divides a limit: databases and sockets get equal parts of what the process itself does not need. */
export function openFilesBudget(files = openFilesLimit()): OpenFilesBudget {
  const half = Math.max(0, files - OWN_FILES) / 2;
  const connections = (share: number) => Math.max(1, Math.floor((half * share) / FILES_PER_CONNECTION));
  return { databases: connections(1 - SEARCH_SHARE), searched: connections(SEARCH_SHARE), sockets: Math.max(1, Math.floor(half)) };
}

/** Returns the problem of a limit that is too low, or `undefined` for a sufficient one. */
export function openFilesProblem(files = openFilesLimit()): string | undefined {
  if (files >= OPEN_FILES_MIN) return undefined;
  return `This process may have ${files} files open at once, and Cairn needs at least ${OPEN_FILES_MIN}. Raise the limit with: ulimit -n 1024`;
}
