import { useRef } from "preact/hooks";
import { Time } from "../../parts/time.tsx";
import { hrefWith } from "../../state/route.ts";
import { useListKeys } from "../../state/use-list-keys.ts";
import { noteOf, sequenceOf } from "./step-note.ts";
import type { Step } from "./use-steps.ts";

/** What happened in a step, in the past tense: the list is a history, and an answered pause waits no longer. */
const VERB: Record<Step["kind"], string> = {
  start: "started",
  node: "completed",
  failed: "failed",
  pause: "asked a question",
  answer: "received the answer",
  rewind: "was set back",
};

/** The steps of a run, newest first, with attempts and reasons of failures. */
export function RunSteps({ steps, at }: { readonly steps: readonly Step[]; readonly at: number }) {
  const list = useRef<HTMLOListElement>(null);
  useListKeys(list);
  const newest = steps.at(-1)?.sequence;
  return (
    <ol class="steps" ref={list} reversed>
      {steps.toReversed().map(({ sequence, node_id, kind, attempt, timestamp, branch, note }) => (
        <li key={sequence} class={[kind, sequence > at && "later"].filter(Boolean).join(" ")}>
          <a
            data-row
            href={hrefWith({ at: sequence === newest ? undefined : String(sequence) })}
            aria-current={sequence === at ? "step" : undefined}
          >
            <span class="number">{sequence}</span>
            <b>{kind === "start" || kind === "rewind" ? "Run" : node_id}</b>
            <span>{VERB[kind]}</span>
            {attempt > 1 && <span class="badge warn">attempt {attempt}</span>}
            {branch !== "" && <span class="soft">in {branch}</span>}
            <span class="soft when">
              <Time at={timestamp} isClock />
            </span>
          </a>
          {note !== undefined && (
            <p class="soft" dir="auto">
              {kind === "rewind" ? `to the state after step ${sequenceOf(note)}` : noteOf(note, kind === "answer")}
            </p>
          )}
        </li>
      ))}
    </ol>
  );
}
