import { useState } from "preact/hooks";
import { call } from "../../api/call.ts";
import { Dialog } from "../../parts/dialog.tsx";
import { Failure } from "../../parts/failure.tsx";
import { FormFooter } from "../../parts/form-footer.tsx";
import { attempt, notify } from "../../state/toasts.ts";
import { useCall } from "../../state/use-call.ts";
import type { Knowledge, Place } from "./use-knowledge.ts";

interface EditKnowledgeProps {
  readonly record: Knowledge;
  readonly place: Place;
  readonly onClose: () => void;
  readonly onSaved: () => void;
}

/** Edits the whole record. That of a list may be shortened, so it is read again, and only changed fields are sent. */
export function EditKnowledge({ record: { id }, place, onClose, onSaved }: EditKnowledgeProps) {
  const { data, error, reload } = useCall("knowledge_get", { ...place, id });
  return (
    <Dialog title="Edit knowledge" onClose={onClose} wide>
      {error && <Failure error={error} retry={reload} />}
      {data ? (
        <KnowledgeForm record={data} place={place} onClose={onClose} onSaved={onSaved} />
      ) : (
        <div class="loading" aria-busy={!error} />
      )}
    </Dialog>
  );
}

function KnowledgeForm({ record, place, onClose, onSaved }: EditKnowledgeProps) {
  const [question, setQuestion] = useState(record.question);
  const [answer, setAnswer] = useState(record.answer);
  const [category, setCategory] = useState(record.category);
  const save = async (event: Event) => {
    event.preventDefault();
    const changes = {
      ...(question !== record.question && { question }),
      ...(answer !== record.answer && { answer }),
      ...(category !== record.category && { category }),
    };
    if (Object.keys(changes).length === 0) return onClose();
    if (!(await attempt(() => call("knowledge_update", { ...place, id: record.id, ...changes })))) return;
    notify("Knowledge saved. Its uses and successes are unchanged.");
    onSaved();
  };
  return (
    <form class="form" onSubmit={save}>
      <label>
        Question
        <textarea required rows={2} value={question} onInput={(event) => setQuestion(event.currentTarget.value)} dir="auto" />
      </label>
      <label>
        Answer
        <textarea required rows={10} value={answer} onInput={(event) => setAnswer(event.currentTarget.value)} dir="auto" />
      </label>
      <label>
        Category
        <input type="text" value={category} onInput={(event) => setCategory(event.currentTarget.value)} dir="auto" />
      </label>
      <FormFooter onCancel={onClose} />
    </form>
  );
}
