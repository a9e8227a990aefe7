import { useState } from "preact/hooks";
import { call, type Output } from "../../api/call.ts";
import { may } from "../../api/session.ts";
import { formatCount, formatPlural } from "../../parts/format.ts";
import { Time } from "../../parts/time.tsx";
import { attempt, notify } from "../../state/toasts.ts";
import { JobFiles } from "./job-files.tsx";

export type Job = Output<"code_jobs">["jobs"][number];

const TONE: Readonly<Record<string, string>> = { completed: "good", partial: "warn", failed: "bad", running: "info", pending: "warn" };

interface IndexJobsProps {
  readonly project: string;
  readonly jobs: readonly Job[];
  readonly reload: () => void;
}

/** The jobs that indexed the project, newest first, each with what it skipped and what failed. */
export function IndexJobs({ project, jobs, reload }: IndexJobsProps) {
  return (
    <section aria-label="Index jobs">
      <h2>Index jobs</h2>
      {jobs.length === 0 && <p class="soft">Jobs appear here, with the files that they skip and the reason.</p>}
      <ul class="list">
        {jobs.map((job, index) => (
          <JobRow key={job.job_id} project={project} job={job} reload={reload} isNewest={index === 0} />
        ))}
      </ul>
    </section>
  );
}

interface JobRowProps {
  readonly project: string;
  readonly job: Job;
  readonly reload: () => void;
  readonly isNewest: boolean;
}

function JobRow({ project, job, reload, isNewest }: JobRowProps) {
  const [isOpen, setOpen] = useState(isNewest);
  const isEnded = job.status !== "running" && job.status !== "pending";
  const skipped = Object.values(job.skipped).reduce((sum, count) => sum + count, 0);
  const { failed = 0 } = job.counts;
  const cancel = async () => {
    if (await attempt(() => call("code_cancel", { project_path: project, job_id: job.job_id })))
      notify("Cancel requested. The job ends after its current batch.");
    reload();
  };
  return (
    <li>
      <div class="grow">
        <p class="row-actions">
          <span class={`badge ${job.interrupted ? "warn" : (TONE[job.status] ?? "")}`}>{job.interrupted ? "interrupted" : job.status}</span>
          <b>
            <Time at={job.started_at} />
          </b>
          <span class="soft">
            {isEnded
              ? `${durationOf(job)}${formatPlural(job.files_total, "file")}: ${countsText(job)}`
              : `${formatCount(job.files_processed)} of ${formatPlural(job.files_total, "file")}, ${job.phase}${job.eta_seconds === undefined ? "" : `, about ${job.eta_seconds} s left`}`}
          </span>
          {!isEnded && <progress max={Math.max(1, job.files_total)} value={job.files_processed} aria-label="Progress of the job" />}
        </p>
        {job.error !== undefined && <p class="bad-text">{job.error}</p>}
        {skipped + failed > 0 && (
          <p class="gap-small">
            <button type="button" class="link" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
              {isOpen ? "Hide" : "Show"} {formatPlural(skipped, "skipped entry", "skipped entries")}
              {failed > 0 && ` and ${formatPlural(failed, "failed file")}`}
            </button>
          </p>
        )}
        {isOpen && <JobFiles job={job} />}
      </div>
      {!isEnded && may("code_cancel") && (
        <button type="button" disabled={job.cancel_requested} onClick={cancel}>
          {job.cancel_requested ? "Cancelling…" : "Cancel"}
        </button>
      )}
    </li>
  );
}

function countsText({ counts }: Job): string {
  const { chunks: _, bytes: __, ...files } = counts;
  const parts = Object.entries(files).flatMap(([name, count]) => (count > 0 ? [`${formatCount(count)} ${name}`] : []));
  return parts.join(", ") || "nothing to do";
}

function durationOf({ started_at, finished_at }: Job): string {
  if (finished_at === undefined) return "";
  const seconds = Math.max(0, Date.parse(finished_at) - Date.parse(started_at)) / 1_000;
  return seconds < 60 ? `${seconds.toFixed(1)} s, ` : `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s, `;
}
