import { useState } from "preact/hooks";
import { call, MAX_TOKENS } from "../../api/call.ts";
import { Dialog } from "../../parts/dialog.tsx";
import { Failure } from "../../parts/failure.tsx";
import { FormFooter } from "../../parts/form-footer.tsx";
import { attempt, notify } from "../../state/toasts.ts";
import { useCall } from "../../state/use-call.ts";
import type { Checkpoint } from "./checkpoint-feed.ts";

interface EditCheckpointProps {
  readonly checkpoint: Checkpoint;
  readonly onClose: () => void;
  readonly onSaved: () => void;
}

/** Edits the whole record. That of a list may be shortened, so it is read again, and only changed fields are sent. */
export function EditCheckpoint({ checkpoint: { project_path, id }, onClose, onSaved }: EditCheckpointProps) {
  const { data, error, reload } = useCall("checkpoint_get", { project_path, id, max_tokens: MAX_TOKENS });
  return (
    <Dialog title="Edit checkpoint" onClose={onClose} wide>
      {error && <Failure error={error} retry={reload} />}
      {data ? <CheckpointForm checkpoint={data} onClose={onClose} onSaved={onSaved} /> : <div class="loading" aria-busy={!error} />}
    </Dialog>
  );
}

function CheckpointForm({ checkpoint, onClose, onSaved }: EditCheckpointProps) {
  const [summary, setSummary] = useState(checkpoint.summary);
  const [description, setDescription] = useState(checkpoint.description);
  const [tagText, setTagText] = useState(checkpoint.tags.join(", "));
  const save = async (event: Event) => {
    event.preventDefault();
    const tags = tagText
      .split(",")
      .map((tag) => tag.trim())
      .filter(Boolean);
    const changes = {
      ...(summary !== checkpoint.summary && { summary }),
      ...(description !== checkpoint.description && { description }),
      ...(tags.join() !== checkpoint.tags.join() && { tags }),
    };
    if (Object.keys(changes).length === 0) return onClose();
    if (!(await attempt(() => call("checkpoint_update", { project_path: checkpoint.project_path, id: checkpoint.id, ...changes })))) return;
    notify("Checkpoint saved.");
    onSaved();
  };
  return (
    <form class="form" onSubmit={save}>
      <label>
        Summary
        <input type="text" required maxLength={500} value={summary} onInput={(event) => setSummary(event.currentTarget.value)} dir="auto" />
      </label>
      <label>
        Description
        <textarea
          rows={12}
          maxLength={10_000}
          value={description}
          onInput={(event) => setDescription(event.currentTarget.value)}
          dir="auto"
        />
      </label>
      <label>
        Tags, separated by commas
        <input type="text" value={tagText} onInput={(event) => setTagText(event.currentTarget.value)} dir="auto" />
      </label>
      <FormFooter onCancel={onClose} />
    </form>
  );
}
