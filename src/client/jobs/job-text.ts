/** What is told of a job, as on the wire. */
interface Told {
  readonly job_id: string;
  readonly status: string;
  readonly phase: string;
  readonly started_at?: string | undefined;
  readonly finished_at?: string | undefined;
  readonly files_processed: number;
  readonly files_total: number;
  readonly current_file?: string | undefined;
  readonly eta_seconds?: number | undefined;
  readonly counts: Readonly<Record<string, number>>;
  readonly skipped: Readonly<Record<string, number>>;
  readonly skipped_files: readonly { readonly path: string; readonly reason: string }[];
  readonly failed_files: readonly { readonly path: string; readonly reason: string }[];
  readonly error?: string | undefined;
}

const FAILED_SHOWN = 10;

/** A job in a few lines: what was done, what was left out and why, what failed. */
export function jobText(job: unknown): string {
  const { job_id, status, phase, counts, skipped, skipped_files, failed_files, error, ...told } = job as Told;
  const { indexed = 0, unchanged = 0, renamed = 0, removed = 0, failed = 0, chunks = 0, bytes = 0 } = counts;
  const progress =
    status === "running"
      ? `${told.files_processed} of ${told.files_total} files${told.eta_seconds === undefined ? "" : `, about ${told.eta_seconds} s left`} (${phase})`
      : phase;
  const over = status !== "running" && status !== "pending";
  const left = Object.entries(skipped).sort(([, a], [, b]) => b - a);
  return [
    `Index job ${job_id}: ${status}${over ? took(told) : `, ${progress}`}`,
    ...(error ? [`  ${error}`] : []),
    ...(over || told.files_processed > 0
      ? [`  files    ${list({ indexed, unchanged, renamed, removed, failed }, ["indexed", "unchanged"])}`]
      : []),
    ...(chunks > 0 ? [`  chunks   ${chunks} new, from ${size(bytes)}`] : []),
    ...(left.length > 0 ? [`  skipped  ${left.map(([reason, count]) => `${count} ${reason.replaceAll("_", " ")}`).join(", ")}`] : []),
    ...left.flatMap(([reason, count]) => {
      const named = skipped_files.filter((file) => file.reason === reason).map(({ path }) => path);
      return named.length > 0 ? [`           ${reason.replaceAll("_", " ")}: ${named.join(", ")}${count > named.length ? ", …" : ""}`] : [];
    }),
    ...failed_files.slice(0, FAILED_SHOWN).map(({ path, reason }) => `  failed   ${path}: ${reason}`),
    ...(failed > FAILED_SHOWN ? [`  … and ${failed - Math.min(FAILED_SHOWN, failed_files.length)} more that failed`] : []),
    ...(failed > 0 ? ["  What failed is tried again by the next index."] : []),
  ].join("\n");
}

function took({ started_at, finished_at }: Pick<Told, "started_at" | "finished_at">): string {
  if (!started_at || !finished_at) return "";
  const seconds = (Date.parse(finished_at) - Date.parse(started_at)) / 1_000;
  return seconds < 60 ? ` in ${seconds.toFixed(1)} s` : ` in ${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

function list(counts: Readonly<Record<string, number>>, always: readonly string[]): string {
  return Object.entries(counts)
    .filter(([name, count]) => count > 0 || always.includes(name))
    .map(([name, count]) => `${count} ${name}`)
    .join(", ");
}

function size(bytes: number): string {
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
