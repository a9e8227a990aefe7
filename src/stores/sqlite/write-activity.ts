import { hostname } from "node:os";
import type { SqliteTx } from "./driver.ts";

/** Writes are counted in slices of this many seconds. */
const SLICE_SECONDS = 10;
/** As long as the longest window that can be asked for. */
const KEPT_SLICES = 3_600 / SLICE_SECONDS;

const me = `${process.pid}@${hostname()}`;

/** Counts a commit for this process. Goes into the commit itself, so it costs no write of its own and no process is missed. */
export function noteWrite(tx: SqliteTx, seconds: number): void {
  const slice = Math.floor(seconds / SLICE_SECONDS);
  const { changes } = tx.run("UPDATE write_activity SET commits = commits + 1 WHERE slice = ? AND process = ?", slice, me);
  if (changes > 0) return;
  tx.run("INSERT INTO write_activity (slice, process, commits) VALUES (?, ?, 1)", slice, me);
  tx.run("DELETE FROM write_activity WHERE slice < ?", slice - KEPT_SLICES);
}

export interface WriteActivity {
  /** Commits in the window, and how many seconds of it the slices cover. */
  readonly commits: number;
  readonly seconds: number;
  /** `<process id>@<machine>` of each that committed. */
  readonly processes: readonly string[];
}

/** What was written in the last so many seconds, whole slices, the present one included. */
export function readActivity(
  all: (sql: string, ...params: number[]) => readonly unknown[],
  nowSeconds: number,
  windowSeconds: number,
): WriteActivity {
  const slices = Math.max(1, Math.ceil(windowSeconds / SLICE_SECONDS));
  const last = Math.floor(nowSeconds / SLICE_SECONDS);
  const rows = all(
    "SELECT process, sum(commits) AS commits FROM write_activity WHERE slice > ? AND slice <= ? GROUP BY process",
    last - slices,
    last,
  ) as readonly { process: string; commits: number }[];
  return {
    commits: rows.reduce((sum, { commits }) => sum + Number(commits), 0),
    seconds: slices * SLICE_SECONDS,
    processes: rows.map(({ process: name }) => name),
  };
}
