import { hostname } from "node:os";
import type { SqliteTx } from "./driver.ts";

/** Writes are counted in slices of this many seconds. */
const SLICE_SECONDS = 10;
/** Slices that are kept: as long as the longest window. */
const KEPT_SLICES = 3_600 / SLICE_SECONDS;

const me = `${process.pid}@${hostname()}`;

/** Counts a commit of a component in this process, inside that commit, so that it needs no write of its own. */
export function noteWrite(tx: SqliteTx, component: string, seconds: number): void {
  const slice = Math.floor(seconds / SLICE_SECONDS);
  const { changes } = tx.run(
    "UPDATE write_activity SET commits = commits + 1 WHERE slice = ? AND component = ? AND process = ?",
    slice,
    component,
    me,
  );
  if (changes > 0) return;
  tx.run("INSERT INTO write_activity (slice, component, process, commits) VALUES (?, ?, ?, 1)", slice, component, me);
  tx.run("DELETE FROM write_activity WHERE slice < ?", slice - KEPT_SLICES);
}

export interface WriteActivity {
  /** The component that committed most in the window; absent when none did. */
  readonly busiest?: { readonly component: string; readonly commits: number } | undefined;
  /** Seconds that the slices cover, up to now. */
  readonly seconds: number;
  /** `<process id>@<machine>` of each that committed. */
  readonly processes: readonly string[];
}

/** Reads the commits in the window: its whole slices and the current one up to now. */
export function readActivity(
  all: (sql: string, ...params: number[]) => readonly unknown[],
  nowSeconds: number,
  windowSeconds: number,
): WriteActivity {
  const slices = Math.max(1, Math.ceil(windowSeconds / SLICE_SECONDS));
  const last = Math.floor(nowSeconds / SLICE_SECONDS);
  const first = last - slices;
  const rows = all(
    "SELECT component, process, sum(commits) AS commits FROM write_activity WHERE slice >= ? AND slice <= ? GROUP BY component, process",
    first,
    last,
  ) as readonly { component: string; process: string; commits: number }[];
  const commitsOf = new Map<string, number>();
  for (const { component, commits } of rows) commitsOf.set(component, (commitsOf.get(component) ?? 0) + Number(commits));
  const [busiest] = [...commitsOf].sort(([, a], [, b]) => b - a);
  return {
    ...(busiest && { busiest: { component: busiest[0], commits: busiest[1] } }),
    seconds: Math.max(slices * SLICE_SECONDS, nowSeconds - first * SLICE_SECONDS),
    processes: [...new Set(rows.map(({ process: name }) => name))],
  };
}
