import { useState } from "preact/hooks";
import { MAX_TOKENS } from "../../api/call.ts";
import { Failure } from "../../parts/failure.tsx";
import { isShortened, projectName } from "../../parts/format.ts";
import { FreshnessMark } from "../../parts/freshness-mark.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Time } from "../../parts/time.tsx";
import { hrefOf, hrefWith } from "../../state/route.ts";
import { useCall } from "../../state/use-call.ts";
import { CheckpointActions } from "./checkpoint-actions.tsx";
import type { Checkpoint } from "./checkpoint-feed.ts";

interface CheckpointCardProps {
  readonly checkpoint: Checkpoint;
  readonly showProject?: boolean;
  readonly isOpen?: boolean;
  readonly onChange: (action: "updated" | "deleted" | "restored") => void;
}

/** A checkpoint: its summary and facts; the description folds out. */
export function CheckpointCard({ checkpoint, showProject = false, isOpen = false, onChange }: CheckpointCardProps) {
  const [open, setOpen] = useState(isOpen);
  const { summary, context, tags, created_at, project_path } = checkpoint;
  const isAutomatic = tags.includes("auto");
  return (
    <article class={open ? "card open" : "card"}>
      <button type="button" class="card-head" data-row aria-expanded={open} onClick={() => setOpen(!open)}>
        <span class="card-time">
          <Time at={created_at} isClock />
        </span>
        <span class="card-summary" dir="auto">
          {summary}
        </span>
      </button>
      <div class="facts">
        {showProject && <a href={hrefOf("timeline", { project: project_path })}>{projectName(project_path)}</a>}
        <span title={isAutomatic ? "Saved by a hook, without being asked" : "Saved by an agent or a person"}>
          {isAutomatic ? "automatic" : "deliberate"}
        </span>
        <FreshnessMark freshness={checkpoint.freshness} supersededBy={checkpoint.superseded_by} />
        {context.branch !== undefined && (
          <a href={hrefWith({ branch: context.branch })} dir="auto">
            <Icon name="branch" />
            {context.branch}
          </a>
        )}
        {context.session_id !== undefined && (
          <a href={hrefOf("sessions", { project: project_path, session: context.session_id })}>session {context.session_id.slice(0, 8)}</a>
        )}
        {tags.map((tag) => (
          <a key={tag} class="tag" href={hrefWith({ tag })} dir="auto">
            {tag}
          </a>
        ))}
      </div>
      {open && <CheckpointDetails checkpoint={checkpoint} />}
      <CheckpointActions checkpoint={checkpoint} onChange={onChange} />
    </article>
  );
}

/** The whole record: one that the list shortened is read. */
function CheckpointDetails({ checkpoint }: { readonly checkpoint: Checkpoint }) {
  const { id, project_path } = checkpoint;
  const missing = isShortened(checkpoint.description) ? { project_path, id, max_tokens: MAX_TOKENS } : undefined;
  const { data, error, reload } = useCall("checkpoint_get", missing, undefined, checkpoint.updated_at);
  if (error) return <Failure error={error} retry={reload} />;
  if (missing && !data) return <div class="loading" aria-busy="true" />;
  const { description, context, token_count, created_at } = (missing && data) || checkpoint;
  const facts = Object.entries(context);
  return (
    <div class="card-body">
      {description === "" ? (
        <p class="soft">No description.</p>
      ) : (
        <div class="prose" dir="auto">
          {description}
        </div>
      )}
      <dl class="pairs">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt dir="auto">{name}</dt>
            <dd dir="auto">{value}</dd>
          </div>
        ))}
        <div>
          <dt>saved</dt>
          <dd>
            <Time at={created_at} isExact />
          </dd>
        </div>
        <div>
          <dt>id</dt>
          <dd>
            <a href={hrefOf("timeline", { project: project_path, id })}>
              <code>{id}</code>
            </a>
          </dd>
        </div>
        <div>
          <dt>tokens</dt>
          <dd>{token_count}</dd>
        </div>
      </dl>
    </div>
  );
}
