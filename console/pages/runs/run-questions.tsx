import { useState } from "preact/hooks";
import { call, type Output } from "../../api/call.ts";
import { may } from "../../api/session.ts";
import { Command } from "../../parts/empty.tsx";
import { attempt, notify } from "../../state/toasts.ts";
import { answerOf } from "./answer-of.ts";
import { questionText } from "./step-note.ts";

type RunDetails = Output<"run_get">;
type Question = RunDetails["questions"][number];

interface RunQuestionsProps {
  readonly run: RunDetails["run"];
  readonly questions: readonly Question[];
  readonly workers: RunDetails["workers"];
  readonly onChange: () => void;
}

/** The open questions of a run, each with a field for the answer, and who continues the run. */
export function RunQuestions({ run, questions, workers, onChange }: RunQuestionsProps) {
  const isWaiting = questions.length > 0 || run.status === "answered" || run.status === "queued";
  if (!isWaiting) return null;
  return (
    <section class="questions" aria-label="Open questions">
      {questions.map((question) => (
        <AnswerForm key={question.sequence} runId={run.run_id} question={question} onChange={onChange} />
      ))}
      {workers?.listening === 0 && (
        <div class="soft">
          <p>
            No process with this graph is listening. {questions.length > 0 && "An answer is stored at once. "}This command continues the
            run:
          </p>
          <Command text={/Run: (.*)$/s.exec(workers.hint ?? "")?.[1] ?? "cairn run work <module that exports the graph>"} />
        </div>
      )}
      {workers !== undefined && workers.listening > 0 && <p class="soft">A process with this graph is listening and continues the run.</p>}
    </section>
  );
}

function AnswerForm({ runId, question, onChange }: { readonly runId: string; readonly question: Question; readonly onChange: () => void }) {
  const [text, setText] = useState("");
  const answer = answerOf(text);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (!(await attempt(() => call("run_answer", { run_id: runId, node: question.node, sequence: question.sequence, ...answer })))) return;
    notify("Answer stored. A worker that has the graph continues the run.");
    onChange();
  };
  return (
    <form class="form" onSubmit={submit}>
      <h2 dir="auto">{questionText(parse(question.question_json))}</h2>
      {may("run_answer") && (
        <>
          <label>
            Answer for {question.node}
            <textarea
              rows={2}
              required
              value={text}
              placeholder={'A text, or JSON such as {"by": "support", "ok": true}'}
              onInput={(event) => setText(event.currentTarget.value)}
              dir="auto"
            />
          </label>
          <footer>
            <span class="soft grow">{text.trim() === "" ? "" : "answer_json" in answer ? "sent as JSON" : "sent as text"}</span>
            <button type="submit" class="primary" disabled={text.trim() === ""}>
              Answer
            </button>
          </footer>
        </>
      )}
    </form>
  );
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
}
