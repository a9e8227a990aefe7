import { Failure } from "../../parts/failure.tsx";
import { StateTree } from "../../parts/state-tree.tsx";
import { useCall } from "../../state/use-call.ts";

interface RunStateProps {
  readonly runId: string;
  readonly sequence: number;
}

/** The state after a step, with the difference from the step before. */
export function RunState({ runId, sequence }: RunStateProps) {
  const now = useCall("run_state", { run_id: runId, sequence });
  const previous = now.data?.previous;
  const before = useCall("run_state", previous === undefined ? undefined : { run_id: runId, sequence: previous });
  if (now.error) return <Failure error={now.error} retry={now.reload} />;
  const json = now.data?.state_json;
  return (
    <section aria-label="State" aria-busy={now.loading}>
      <h2>State after step {sequence}</h2>
      {json === undefined ? (
        <p class="soft">{now.loading ? "Loading…" : (now.data?.note ?? "This step has no state that can be shown.")}</p>
      ) : (
        <StateTree
          value={parse(json)}
          before={before.data?.state_json === undefined ? undefined : parse(before.data.state_json)}
          hasBefore={previous !== undefined && before.data?.state_json !== undefined}
        />
      )}
    </section>
  );
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return json; // shortened by the server: shown as text
  }
}
