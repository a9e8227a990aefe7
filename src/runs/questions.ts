import { isDeepStrictEqual } from "node:util";
import { CairnError } from "../model/errors.ts";
import type { Run, RunCheckpointInfo } from "../model/run.ts";
import { runNotFoundError } from "../model/run-rules.ts";
import type { RunStore } from "../ports/run-store.ts";
import { answerCheckpoint, noteOf } from "./line.ts";
import { positionOf } from "./resume.ts";

/** A question that a run waits on. */
export interface Question {
  /** The sequence of the checkpoint that asks it. */
  readonly sequence: number;
  readonly node: string;
  readonly branch: string;
  readonly question: unknown;
  readonly askedAt: string;
}

/** Returns the open questions of a run: one per paused line. */
export async function readQuestions(store: RunStore, runId: string): Promise<readonly Question[]> {
  return (await pausedLines(store, runId)).map(({ sequence, nodeId: node, branch, note, timestamp: askedAt }) => ({
    sequence,
    node,
    branch,
    question: noteOf(note).question,
    askedAt,
  }));
}

export interface Answer {
  /** The node that asks, where several do. */
  readonly node?: string | undefined;
  /** The sequence of the question, so that a repeated call never answers a later one. */
  readonly sequence?: number | undefined;
  readonly answer: unknown;
}

/** Attempts while other processes change the run at the same time. */
const ATTEMPTS = 10;
/** Newest checkpoints among which an earlier answer is looked for. */
const SEARCHED = 1_000;

/**
 * Stores the answer to a run's question exactly once and queues the run. The same answer again changes nothing; another answer to an
 * answered question raises `conflict`. Returns the run, and whether this call stored the answer.
 */
export async function answerQuestion(
  store: RunStore,
  runId: string,
  { node, sequence, answer: given }: Answer,
): Promise<{ readonly run: Run; readonly stored: boolean; readonly question: RunCheckpointInfo }> {
  if (given === undefined) throw new CairnError("invalid_input", "answer: is missing.", { details: { field: "answer" } });
  const answer = store.redactState ? store.redactState(given) : given;
  for (let attempt = 1; ; attempt++) {
    const run = await store.getRun(runId);
    if (!run) throw runNotFoundError(runId);
    const asked = sequence === undefined ? undefined : await findQuestion(store, runId, sequence);
    const open = (await pausedLines(store, runId)).filter(
      (info) => (node === undefined || info.nodeId === node) && (asked === undefined || isSameQuestion(info, asked)),
    );
    if (open.length > 1) throw ambiguousError(runId, open);
    const [question] = open;
    if (!question || run.status === "completed")
      return { run, stored: false, question: await assertSameAnswer(store, run, { node, asked, answer }) };
    const { state } = await store.loadAt(runId, question.sequence);
    const { checkpoint } = answerCheckpoint(question, answer, state);
    try {
      await store.save(checkpoint, { status: "answered", expectedSequence: run.lastSequence });
    } catch (error) {
      if (!(error instanceof CairnError) || error.details?.kind !== "moved" || attempt === ATTEMPTS) throw error;
      continue;
    }
    return { run: (await store.getRun(runId)) ?? run, stored: true, question };
  }
}

async function pausedLines(store: RunStore, runId: string): Promise<readonly RunCheckpointInfo[]> {
  const { lines } = await positionOf(store, runId);
  return [...lines.values()].filter(({ kind }) => kind === "pause");
}

async function findQuestion(store: RunStore, runId: string, sequence: number): Promise<RunCheckpointInfo> {
  const [info] = await store.history(runId, { before: sequence + 1, limit: 1 });
  if (info?.sequence !== sequence || info.kind !== "pause")
    throw new CairnError("invalid_input", `The checkpoint ${sequence} of the run ${JSON.stringify(runId)} asks no question.`);
  return info;
}

/** Returns whether two checkpoints ask the same question: a run that was resumed without an answer asks it again. */
function isSameQuestion(a: RunCheckpointInfo, b: RunCheckpointInfo): boolean {
  return a.branch === b.branch && a.nodeId === b.nodeId && a.step === b.step && answersOf(a).length === answersOf(b).length;
}

const answersOf = ({ note }: RunCheckpointInfo): readonly unknown[] => noteOf(note).answers ?? [];

/** Returns the checkpoint of the answer if the question was answered in the same way; otherwise raises an error. */
async function assertSameAnswer(
  store: RunStore,
  { runId, status }: Run,
  { node, asked, answer }: { readonly node: string | undefined; readonly asked: RunCheckpointInfo | undefined; readonly answer: unknown },
): Promise<RunCheckpointInfo> {
  const recent = await store.history(runId, { limit: SEARCHED });
  const earlier = recent.find(
    (info) =>
      info.kind === "answer" &&
      (node === undefined || info.nodeId === node) &&
      (asked === undefined || isSameQuestion(info, { ...asked, note: JSON.stringify({ answers: [...answersOf(asked), null] }) })),
  );
  if (!earlier)
    throw new CairnError(
      "conflict",
      `The run ${JSON.stringify(runId)} is ${status} and waits for no answer${node === undefined ? "" : ` at ${JSON.stringify(node)}`}. Read the run to see its questions.`,
      { details: { kind: "no_question", runId } },
    );
  if (isDeepStrictEqual(answersOf(earlier).at(-1), answer)) return earlier;
  throw new CairnError(
    "conflict",
    `The question of ${JSON.stringify(earlier.nodeId)} in the run ${JSON.stringify(runId)} was answered differently at ${earlier.timestamp}. The first answer counts. To try another one, fork the run from a checkpoint before it.`,
    { details: { kind: "answered", runId, sequence: earlier.sequence } },
  );
}

function ambiguousError(runId: string, open: readonly RunCheckpointInfo[]): CairnError {
  const nodes = open.map(({ nodeId, branch, sequence }) => `${JSON.stringify(nodeId)}${branch && ` of ${branch}`} (sequence ${sequence})`);
  return new CairnError(
    "invalid_input",
    `The run ${JSON.stringify(runId)} waits for ${open.length} answers: ${nodes.join(", ")}. Name the node, or the sequence of the question.`,
    { details: { kind: "questions", runId } },
  );
}
