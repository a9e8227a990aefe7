import type { z } from "zod";
import { type DrawnStep, drawPath, oneLine } from "./drawing.ts";
import type { RunOutput } from "./wire-schemas.ts";

/** The fields of run_get that are drawn. */
export interface RunAnswer {
  readonly run: z.output<typeof RunOutput>;
  readonly checkpoints: number;
  readonly steps: readonly DrawnStep[];
  readonly truncated: boolean;
  readonly questions: readonly unknown[];
  readonly workers?: { readonly hint?: string | undefined } | undefined;
  readonly state_json?: string | undefined;
  readonly note?: string | undefined;
}

/** The words of a surface for what to do next. */
interface SurfaceWords {
  readonly history: string;
  readonly answer: (runId: string) => string;
}

/** Draws a run: its status, its path through the graph, and what it waits for. */
export function drawRun(
  { run, checkpoints, steps, truncated, questions, workers, state_json, note }: RunAnswer,
  words: SurfaceWords,
): string {
  return [
    `${run.run_id}: ${run.status}${run.reason ? `, ${oneLine(run.reason)}` : ""}`,
    `graph ${run.graph || "(none)"}, ${checkpoints} ${checkpoints === 1 ? "checkpoint" : "checkpoints"}, last change ${run.updated_at}`,
    run.parent ? `forked from ${run.parent.run_id} at ${run.parent.sequence}` : "",
    "",
    truncated ? `┊ … earlier steps: ${words.history}` : "",
    drawPath(steps, run.status),
    questions.length > 0 ? words.answer(run.run_id) : "",
    run.status !== "paused" && workers?.hint ? workers.hint : "",
    state_json ? `\nstate: ${state_json}` : "",
    note ?? "",
  ]
    .filter((line, index) => line !== "" || index === 3)
    .join("\n");
}
