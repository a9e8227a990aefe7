import { useState } from "preact/hooks";
import { formatBytes, formatCount } from "../../parts/format.ts";
import type { Job } from "./index-jobs.tsx";
import { reasonText, reasonTitle } from "./skip-reasons.ts";

interface Left {
  readonly path: string;
  readonly detail?: string | undefined;
}

/** The files that a job did not index, by reason, with a field that finds one of them. */
export function JobFiles({ job }: { readonly job: Job }) {
  const [text, setText] = useState("");
  const fits = ({ path }: Left) => contains(path, text.trim());
  const { failed = 0 } = job.counts;
  const groups = [
    ...(failed > 0
      ? [
          {
            reason: "failed",
            count: failed,
            why: "The next job tries them again.",
            files: job.failed_files.map(({ path, reason }) => ({ path, detail: reason })),
          },
        ]
      : []),
    ...Object.entries(job.skipped)
      .toSorted(([, a], [, b]) => b - a)
      .map(([reason, count]) => ({
        reason,
        count,
        why: reasonText(reason),
        files: job.skipped_files.filter((file) => file.reason === reason) as readonly Left[],
      })),
  ];
  return (
    <div class="left-out">
      <input
        type="search"
        aria-label="Find a skipped file"
        placeholder="Why is this file missing? Type a part of its path"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      {groups
        .filter(({ files }) => text.trim() === "" || files.some(fits))
        .map(({ reason, count, why, files }) => (
          <section key={reason} aria-label={`${reason === "failed" ? "Failed" : "Skipped"}: ${reasonTitle(reason)}`}>
            <h3>
              {reasonTitle(reason)} <span class="soft">{formatCount(count)}</span>
            </h3>
            <p class="soft">{why}</p>
            <ul>
              {files.filter(fits).map(({ path, detail }) => (
                <li key={path}>
                  <code dir="auto">{path}</code> {detail !== undefined && <span class="soft">{readable(detail)}</span>}
                </li>
              ))}
            </ul>
            {files.length < count && <p class="soft">The job names the first {formatCount(files.length)}.</p>}
          </section>
        ))}
      {text.trim() !== "" && !groups.some(({ files }) => files.some(fits)) && (
        <p class="soft">
          No skipped path fits. If it is not in the list of indexed files either, the last job did not find it in the folder.
        </p>
      )}
    </div>
  );
}

/** Formats a size as people read it; other details stay. */
function readable(detail: string): string {
  const bytes = /^(\d+) bytes$/.exec(detail)?.[1];
  return bytes === undefined ? detail : formatBytes(Number(bytes));
}

/** Whether a path fits the text, or is a folder that contains what the text names. */
function contains(path: string, text: string): boolean {
  const wanted = text.toLowerCase();
  const own = path.toLowerCase();
  return own.includes(wanted) || (own.endsWith("/") && `/${wanted}`.includes(`/${own}`));
}
