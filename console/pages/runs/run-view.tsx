import { useEffect, useState } from "preact/hooks";
import { onEvent } from "../../api/events.ts";
import { Failure } from "../../parts/failure.tsx";
import { projectName } from "../../parts/format.ts";
import { Icon } from "../../parts/icon.tsx";
import { Time } from "../../parts/time.tsx";
import { hrefOf, hrefWith, param } from "../../state/route.ts";
import { useCall } from "../../state/use-call.ts";
import { RunActions } from "./run-actions.tsx";
import { isChangeOf, isDeletionOf } from "./run-events.ts";
import { RunGraph } from "./run-graph.tsx";
import { RunQuestions } from "./run-questions.tsx";
import { RunState } from "./run-state.tsx";
import { RunStatus } from "./run-status.tsx";
import { RunSteps } from "./run-steps.tsx";
import { TimeSlider } from "./time-slider.tsx";
import { useSteps } from "./use-steps.ts";

/** One run: its graph with the path taken, its steps in time, and the state at each of them. */
export function RunView({ runId }: { readonly runId: string }) {
  const [isDeleted, setDeleted] = useState(false);
  useEffect(() => onEvent((event) => isDeletionOf(runId, event) && setDeleted(true)), [runId]);
  const { data, error, reload } = useCall("run_get", { run_id: runId }, (event) => isChangeOf(runId, event));
  const steps = useSteps(runId, data?.run.last_sequence);
  if (isDeleted)
    return (
      <p class="empty">
        The run {runId} was deleted. <a href={hrefWith({ run: undefined, at: undefined })}>All runs</a>
      </p>
    );
  if (error) return <Failure error={error} retry={reload} />;
  if (!data || !steps) return <div class="loading" aria-busy="true" />;
  const { run } = data;
  const at = Number(param("at") ?? run.last_sequence);
  const shown = steps.filter(({ sequence }) => sequence <= at);
  const current = shown.at(-1);
  return (
    <>
      <nav aria-label="Back">
        <a href={hrefWith({ run: undefined, at: undefined })}>
          <Icon name="back" />
          Runs
        </a>
      </nav>
      <div class="page-head">
        <h1>{run.run_id}</h1>
        <RunStatus status={run.status} />
        <span class="soft">{run.graph}</span>
        {run.project !== undefined && <a href={hrefOf("timeline", { project: run.project })}>{projectName(run.project)}</a>}
        <span class="soft">
          changed <Time at={run.updated_at} />
        </span>
        {run.parent && (
          <a href={hrefOf("runs", { run: run.parent.run_id, at: String(run.parent.sequence) })}>
            forked from {run.parent.run_id} at step {run.parent.sequence}
          </a>
        )}
      </div>
      {run.reason !== undefined && (
        <p class="failure" dir="auto">
          {run.reason}
        </p>
      )}
      <RunQuestions run={run} questions={data.questions} workers={data.workers} onChange={reload} />
      <RunActions run={run} at={current} onChange={reload} />
      <TimeSlider steps={steps} at={at} />
      <div class="run-split">
        <section aria-label="Graph">
          <RunGraph runId={runId} sequence={current?.sequence ?? at} last={run.last_sequence} />
        </section>
        <section aria-label="Steps">
          <RunSteps steps={steps} at={at} />
        </section>
      </div>
      {current && <RunState runId={runId} sequence={current.sequence} />}
    </>
  );
}
