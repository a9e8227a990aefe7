/** A job on the wire. */
interface WireJob {
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
/** Skipped files that the text names for each reason. */
const SKIPPED_SHOWN = 5;

/** Formats a job in a few lines: counts, skipped files with their reasons, and failures. */
export function jobText(job: unknown): string {
  const { job_id, status, phase, counts, skipped, skipped_files, failed_files, error, ...rest } = job as WireJob;
  const { indexed = 0, unchanged = 0, renamed = 0, removed = 0, failed = 0, chunks = 0, bytes = 0 } = counts;
  const progress =
    status === "running"
      ? `${rest.files_processed} of ${rest.files_total} files${rest.eta_seconds === undefined ? "" : `, about ${rest.eta_seconds} s left`} (${phase})`
      : phase;
  const ended = status !== "running" && status !== "pending";
  const excluded = Object.entries(skipped).sort(([, a], [, b]) => b - a);
  return [
    `Index job ${job_id}: ${status}${ended ? duration(rest) : `, ${progress}`}`,
    ...(error ? [`  ${error}`] : []),
    ...(ended || rest.files_processed > 0
      ? [`  files    ${list({ indexed, unchanged, renamed, removed, failed }, ["indexed", "unchanged"])}`]
      : []),
    ...(chunks > 0 ? [`  chunks   ${chunks} new, from ${size(bytes)}`] : []),
    ...(excluded.length > 0
      ? [`  skipped  ${excluded.map(([reason, count]) => `${count} ${reason.replaceAll("_", " ")}`).join(", ")}`]
      : []),
    ...excluded.flatMap(([reason, count]) => {
      if (reason === "ignored") return []; // the project's own rules exclude them, so nobody is surprised
      const named = skipped_files.flatMap((file) => (file.reason === reason ? [file.path] : [])).slice(0, SKIPPED_SHOWN);
      return named.length > 0 ? [`           ${reason.replaceAll("_", " ")}: ${named.join(", ")}${count > named.length ? ", …" : ""}`] : [];
    }),
    ...failed_files.slice(0, FAILED_SHOWN).map(({ path, reason }) => `  failed   ${path}: ${reason}`),
    ...(failed > FAILED_SHOWN ? [`  … and ${failed - Math.min(FAILED_SHOWN, failed_files.length)} more`] : []),
    ...(failed > 0 ? ["  The next index tries failed files again."] : []),
  ].join("\n");
}

function duration({ started_at, finished_at }: Pick<WireJob, "started_at" | "finished_at">): string {
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
