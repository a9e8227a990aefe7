import { param } from "../../state/route.ts";
import { RunList } from "./run-list.tsx";
import { RunView } from "./run-view.tsx";

/** The list of runs, or the run that the address names. */
export default function RunsPage() {
  const runId = param("run");
  return runId === undefined ? <RunList /> : <RunView key={runId} runId={runId} />;
}
