import { useState } from "preact/hooks";
import { call } from "../../api/call.ts";
import { emit } from "../../api/events.ts";
import { may } from "../../api/session.ts";
import { CopyButton } from "../../parts/copy-button.tsx";
import { Failure } from "../../parts/failure.tsx";
import { isShortened } from "../../parts/format.ts";
import { attempt, notify } from "../../state/toasts.ts";
import { useCall } from "../../state/use-call.ts";
import { EditKnowledge } from "./edit-knowledge.tsx";
import type { Knowledge, Place } from "./use-knowledge.ts";

/** The answer of a record, and what can be done with it. */
export function KnowledgeDetails({ record, place }: { readonly record: Knowledge; readonly place: Place }) {
  const [isEditing, setEditing] = useState(false);
  const { id, source } = record;
  const missing = isShortened(record.answer) ? { ...place, id } : undefined;
  const { data, error, reload } = useCall("knowledge_get", missing, undefined, record.updated_at);
  const answer = missing ? data?.answer : record.answer;
  const changed = (action: string) => emit({ kind: "knowledge", action, id });
  const feedback = async (success: boolean) => {
    if (!(await attempt(() => call("knowledge_feedback", { ...place, id, success })))) return;
    notify(success ? "Feedback recorded: it helped." : "Feedback recorded: it did not help.");
    changed("updated");
  };
  const remove = async () => {
    if (!(await attempt(() => call("knowledge_delete", { ...place, id })))) return;
    const restore = async () => {
      await call("knowledge_restore", { ...place, id });
      changed("restored");
    };
    notify("Knowledge deleted.", { run: restore, done: "Knowledge restored." });
    changed("deleted");
  };
  return (
    <div class="row-body">
      {error && <Failure error={error} retry={reload} />}
      <div class="prose" dir="auto" aria-busy={answer === undefined && !error}>
        {answer}
      </div>
      <p class="facts">
        <code>{id}</code>
        {source !== "" && <span dir="auto">from {source}</span>}
      </p>
      <div class="row-actions">
        {may("knowledge_feedback") && (
          <>
            <button type="button" onClick={() => feedback(true)}>
              It helped
            </button>
            <button type="button" onClick={() => feedback(false)}>
              It did not help
            </button>
          </>
        )}
        {may("knowledge_update") && (
          <button type="button" onClick={() => setEditing(true)}>
            Edit
          </button>
        )}
        {may("knowledge_delete") && (
          <button type="button" onClick={remove}>
            Delete
          </button>
        )}
        {answer !== undefined && <CopyButton text={() => answer} label="Copy answer" />}
      </div>
      {isEditing && (
        <EditKnowledge
          record={record}
          place={place}
          onClose={() => setEditing(false)}
          onSaved={() => {
            setEditing(false);
            changed("updated");
          }}
        />
      )}
    </div>
  );
}
