import { useEffect, useState } from "preact/hooks";
import { call } from "../../api/call.ts";
import { session } from "../../api/session.ts";
import { confirm } from "../../parts/confirm.tsx";
import { projects } from "../../state/projects.ts";
import { attempt, notify } from "../../state/toasts.ts";
import type { Job } from "./index-jobs.tsx";

/** Milliseconds after which a job that has not reported no longer blocks the button. */
const START_MS = 20_000;

interface IndexButtonProps {
  readonly project: string;
  readonly jobs: readonly Job[];
  /** Whether nothing of the project is indexed yet. */
  readonly isFirst: boolean;
  readonly onStart: () => void;
}

/** Whether the server runs as the user of this browser and may know the project's folder. `isFirst` if nothing is indexed yet. */
export function canIndex(project: string, isFirst: boolean): boolean {
  const isKnown = !isFirst || projects.value?.some(({ project_path }) => project_path === project) === true;
  return session.value?.indexes_folders === true && isKnown && /^(\/|[A-Za-z]:)/.test(project);
}

/** Starts an index job, where the server runs as the user of this browser and knows the project. Others see only the command. */
export function IndexButton({ project, jobs, isFirst, onStart }: IndexButtonProps) {
  const [startedId, setStarted] = useState<string>();
  const isRunning = jobs.some(({ status, interrupted }) => (status === "running" || status === "pending") && !interrupted);
  const isStarting = startedId !== undefined && !jobs.some(({ job_id }) => job_id === startedId);
  useEffect(() => {
    if (!isStarting) return;
    const timer = setTimeout(() => setStarted(undefined), START_MS);
    return () => clearTimeout(timer);
  }, [isStarting]);
  if (!canIndex(project, isFirst)) return null;
  const start = async () => {
    const question = `Cairn reads the source files in ${project} on this machine. Everybody who may read this project can then search them.`;
    if (!(await confirm("Index this folder?", question, "Index", { isSafe: true }))) return;
    await attempt(async () => {
      const { job_id } = await call("code_index", { project_path: project });
      setStarted(job_id);
      notify("Indexing started. Its progress is under Index jobs.");
      onStart();
    });
  };
  return (
    <button type="button" class="primary" disabled={isRunning || isStarting} onClick={start}>
      {isStarting ? "Starting…" : isRunning ? "Indexing…" : isFirst ? "Index now" : "Index again"}
    </button>
  );
}
