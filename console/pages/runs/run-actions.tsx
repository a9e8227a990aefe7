import { call, type Output } from "../../api/call.ts";
import { emit } from "../../api/events.ts";
import { may } from "../../api/session.ts";
import { confirm } from "../../parts/confirm.tsx";
import { go, hrefOf, hrefWith } from "../../state/route.ts";
import { attempt, notify } from "../../state/toasts.ts";
import type { Step } from "./use-steps.ts";

interface RunActionsProps {
  readonly run: Output<"run_get">["run"];
  /** The step that the page shows. */
  readonly at: Step | undefined;
  readonly onChange: () => void;
}

/** What can be done with a run: a worker that has the graph then continues it. */
export function RunActions({ run, at, onChange }: RunActionsProps) {
  const { run_id, status } = run;
  const resume = async () => {
    if (!(await attempt(() => call("run_resume", { run_id })))) return;
    notify("Run queued. A worker that has its graph continues it.");
    onChange();
  };
  const fork = () =>
    attempt(async () => {
      const { run: forked } = await call("run_fork", { run_id, sequence: at!.sequence });
      notify(`New run created from step ${at!.sequence}.`);
      go(hrefOf("runs", { run: forked.run_id }));
    });
  const remove = async () => {
    if (!(await confirm("Delete this run?", `The run ${run_id} and its history are deleted for good.`, "Delete run"))) return;
    if (!(await attempt(() => call("run_delete", { run_id })))) return;
    emit({ kind: "run", action: "deleted", id: run_id }); // so that a late event about the run does not read it again
    notify("Run deleted.");
    go(hrefWith({ run: undefined, at: undefined }));
  };
  return (
    <div class="row-actions">
      {may("run_resume") && (status === "failed" || status === "cancelled" || status === "running") && (
        <button type="button" onClick={resume}>
          Resume
        </button>
      )}
      {may("run_fork") && at && (
        <button type="button" onClick={fork}>
          Fork from step {at.sequence}
        </button>
      )}
      {may("run_delete") && (
        <button type="button" onClick={remove}>
          Delete
        </button>
      )}
    </div>
  );
}
