import { useState } from "preact/hooks";
import { MAX_TOKENS, type Output } from "../../api/call.ts";
import { emit } from "../../api/events.ts";
import { Empty } from "../../parts/empty.tsx";
import { Failure } from "../../parts/failure.tsx";
import { formatPlural, projectName } from "../../parts/format.ts";
import { Time } from "../../parts/time.tsx";
import { param, project } from "../../state/route.ts";
import { useCall } from "../../state/use-call.ts";
import { CheckpointCard } from "../timeline/checkpoint-card.tsx";
import { SessionPreview } from "./session-preview.tsx";

type Session = Output<"session_list">["sessions"][number];

/** Checkpoints by the session of the agent that saved them, and what the next session receives. */
export default function SessionsPage() {
  const selected = project.value;
  const { data, error, reload } = useCall(
    "session_list",
    selected === undefined ? undefined : { project_path: selected, limit: 100 },
    (event) => event.kind === "checkpoint" && event.project === selected,
  );
  return (
    <>
      <div class="page-head">
        <h1>Sessions</h1>
        {selected !== undefined && <span class="soft">{projectName(selected)}</span>}
      </div>
      {selected === undefined && <Empty text="Sessions belong to a project. Choose one on the left." />}
      {selected !== undefined && <SessionPreview project={selected} />}
      {error && <Failure error={error} retry={reload} />}
      {data?.sessions.length === 0 && (
        <Empty text="Sessions of agents appear here once their hooks save checkpoints." command="cairn init" />
      )}
      {data?.sessions.map((session) => (
        <SessionRow key={session.session_id} project={selected!} session={session} />
      ))}
      {data?.complete === false && <p class="soft">Older sessions are in the timeline.</p>}
    </>
  );
}

interface SessionRowProps {
  readonly project: string;
  readonly session: Session;
}

function SessionRow({ project: path, session }: SessionRowProps) {
  const { session_id, branch, first_at, last_at, checkpoints, summary } = session;
  const [isOpen, setOpen] = useState(param("session") === session_id);
  return (
    <details class="session" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary data-row>
        <b>
          <Time at={last_at} />
        </b>
        <code>{session_id.slice(0, 8)}</code>
        <span class="soft">{branch}</span>
        <span class="soft">{formatPlural(checkpoints, "checkpoint")}</span>
        <span class="soft">
          from <Time at={first_at} isExact /> to <Time at={last_at} isExact />
        </span>
        <span dir="auto">{summary}</span>
      </summary>
      {isOpen && <SessionCheckpoints project={path} id={session_id} />}
    </details>
  );
}

function SessionCheckpoints({ project: path, id }: { readonly project: string; readonly id: string }) {
  const { data, error, reload } = useCall(
    "checkpoint_list",
    { project_path: path, context: { session_id: id }, limit: 100, max_tokens: MAX_TOKENS },
    (event) => event.kind === "checkpoint" && event.project === path,
  );
  if (error) return <Failure error={error} retry={reload} />;
  return (
    <>
      {data?.checkpoints.map((checkpoint) => (
        <CheckpointCard
          key={checkpoint.id}
          checkpoint={checkpoint}
          onChange={(action) => emit({ kind: "checkpoint", action, project: path, id: checkpoint.id })}
        />
      ))}
    </>
  );
}
