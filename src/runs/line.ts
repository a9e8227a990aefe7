import type { NewRunCheckpoint, RunCheckpoint, RunCheckpointInfo, StoredState } from "../model/run.ts";
import { decodeState, decodeText, encodeText } from "../text/plain-data.ts";
import type { GraphDefinition } from "./definition.ts";
import type { Scope } from "./scope.ts";

/** One thread of a run: the main line, a branch of a fork, or the inside of a sub-graph. */
export interface Line {
  readonly graph: GraphDefinition;
  readonly branch: string;
  /** The node at which this line ends, without executing it. */
  readonly stop: string;
  readonly scope: Scope;
  state: unknown;
  /** The last stored state, so that a step that mutates its input has no effect. */
  encoded: StoredState | undefined;
  next: string;
  previous: string | null;
  step: number;
  /** The number of failed attempts of the next node. */
  failed: number;
  /** The answers so far to the next node's questions. */
  answers: readonly unknown[];
}

/** The note of a checkpoint that is not a finished step. */
export interface LineNote {
  readonly question?: unknown;
  readonly answers?: readonly unknown[];
  readonly message?: string;
}

export function noteOf(note: string | null): LineNote {
  return note === null ? {} : ((decodeText(note) ?? {}) as LineNote);
}

/** Restores a line from a checkpoint. */
export function lineFrom(checkpoint: RunCheckpoint, fixed: Pick<Line, "graph" | "stop" | "scope">): Line {
  const { kind, attempt } = checkpoint;
  const unfinished = kind === "failed" || kind === "pause" || kind === "answer";
  return {
    ...fixed,
    branch: checkpoint.branch,
    state: decodeState(checkpoint.state),
    encoded: checkpoint.state,
    next: checkpoint.nextNode ?? fixed.stop,
    previous: unfinished ? checkpoint.previousNode : checkpoint.nodeId,
    step: checkpoint.step,
    failed: !unfinished ? 0 : kind === "failed" ? attempt : attempt - 1,
    answers: unfinished ? (noteOf(checkpoint.note).answers ?? []) : [],
  };
}

/** Returns the checkpoint that stores the answer to the question of a paused line, and all answers of its step so far. */
export function answerCheckpoint(
  { runId, nodeId, nextNode, previousNode, attempt, branch, step, note }: RunCheckpointInfo,
  answer: unknown,
  state: StoredState,
): { readonly checkpoint: NewRunCheckpoint; readonly answers: readonly unknown[] } {
  const { question, answers: before = [] } = noteOf(note);
  const answers = [...before, answer];
  const checkpoint = { runId, nodeId, nextNode, previousNode, attempt, branch, step, kind: "answer", state } as const;
  return { checkpoint: { ...checkpoint, note: encodeText({ question, answers }) }, answers };
}
