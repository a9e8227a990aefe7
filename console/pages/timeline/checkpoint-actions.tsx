import { useState } from "preact/hooks";
import { call } from "../../api/call.ts";
import { may } from "../../api/session.ts";
import { CopyButton } from "../../parts/copy-button.tsx";
import { Icon } from "../../parts/icon.tsx";
import { attempt, notify } from "../../state/toasts.ts";
import type { Checkpoint } from "./checkpoint-feed.ts";
import { compared, toggleCompared } from "./compare.tsx";
import { EditCheckpoint } from "./edit-checkpoint.tsx";

interface CheckpointActionsProps {
  readonly checkpoint: Checkpoint;
  readonly onChange: (action: "updated" | "deleted" | "restored") => void;
}

/** What can be done with a checkpoint. Actions that the caller may not use are absent. */
export function CheckpointActions({ checkpoint, onChange }: CheckpointActionsProps) {
  const [isEditing, setEditing] = useState(false);
  const record = { project_path: checkpoint.project_path, id: checkpoint.id };
  const remove = async () => {
    if (!(await attempt(() => call("checkpoint_delete", record)))) return;
    onChange("deleted");
    const restore = async () => {
      await call("checkpoint_restore", record);
      onChange("restored");
    };
    notify("Checkpoint deleted.", { run: restore, done: "Checkpoint restored." });
  };
  return (
    <div class="actions">
      <label class="compare">
        <input
          type="checkbox"
          checked={compared.value.some(({ id }) => id === checkpoint.id)}
          onChange={() => toggleCompared(checkpoint)}
        />
        Compare
      </label>
      <CopyButton text={async () => (await call("checkpoint_resume", { ...record, level: "full" })).text} label="Copy resume text" />
      {may("checkpoint_update") && (
        <button type="button" class="quiet icon" title="Edit" aria-label="Edit" onClick={() => setEditing(true)}>
          <Icon name="edit" />
        </button>
      )}
      {may("checkpoint_delete") && (
        <button type="button" class="quiet icon" title="Delete" aria-label="Delete" onClick={remove}>
          <Icon name="trash" />
        </button>
      )}
      {isEditing && (
        <EditCheckpoint
          checkpoint={checkpoint}
          onClose={() => setEditing(false)}
          onSaved={() => {
            setEditing(false);
            onChange("updated");
          }}
        />
      )}
    </div>
  );
}
