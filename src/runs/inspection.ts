import type { GraphShape } from "../model/graph-shape.ts";
import { LIMITS } from "../model/limits.ts";
import type { Run, RunCheckpointInfo } from "../model/run.ts";
import { checkpointNotFoundError, runNotFoundError } from "../model/run-rules.ts";
import type { RunStore } from "../ports/run-store.ts";
import { decodeState } from "../text/plain-data.ts";
import { compareStates, type StateChange } from "./compare-states.ts";
import { type GraphView, viewGraph } from "./graph-view.ts";
import { noteOf } from "./line.ts";
import type { MaySee } from "./service.ts";
import { STATE_SHOWN_BYTES } from "./state-json.ts";

/** One failed attempt of a step. */
export interface FailedAttempt {
  readonly sequence: number;
  readonly node: string;
  readonly branch: string;
  readonly attempt: number;
  readonly message: string;
  readonly timestamp: string;
}

export interface RunGraph extends GraphView {
  readonly run: Run;
  readonly version?: string | undefined;
  /** Whether the shape is stored. Without it, only the steps that were taken are returned. */
  readonly shapeStored: boolean;
  /** The newest failed attempts, newest first. */
  readonly failures: readonly FailedAttempt[];
  /** Whether older checkpoints were not counted. */
  readonly truncated: boolean;
  readonly shape?: GraphShape | undefined;
}

export interface RunState {
  readonly checkpoint: RunCheckpointInfo;
  /** The sequence of the checkpoint before it on the same line. */
  readonly previous?: number | undefined;
  /** Absent if the state is too large to be shown. */
  readonly state?: { readonly value: unknown } | undefined;
  readonly changes: readonly StateChange[];
  readonly moreChanges: boolean;
}

/** Reads how a run went: its graph with the path taken, and its state at any step. */
export interface RunInspection {
  graph(input: { readonly runId: string; readonly sequence?: number | undefined }, maySee?: MaySee): Promise<RunGraph>;
  state(input: { readonly runId: string; readonly sequence?: number | undefined }, maySee?: MaySee): Promise<RunState>;
}

const PAGE = 1_000;
const FAILURES_SHOWN = 100;

export function runInspection({ store }: { readonly store: RunStore }): RunInspection {
  async function findVisible(runId: string, maySee: MaySee | undefined): Promise<Run> {
    const run = await store.getRun(runId);
    if (!run || (maySee && !maySee(run.project))) throw runNotFoundError(runId);
    return run;
  }

  return {
    async graph({ runId, sequence }, maySee) {
      const run = await findVisible(runId, maySee);
      const [shape, { steps, truncated }] = await Promise.all([
        store.getGraph(run.graph, run.fingerprint),
        readSteps(store, runId, sequence),
      ]);
      // At an earlier checkpoint the run was on its way.
      const status = sequence !== undefined && sequence < run.lastSequence && run.status === "completed" ? "running" : run.status;
      const view = viewGraph(shape ?? shapeOfSteps(run, steps), steps, status);
      const failures = steps.filter(({ kind }) => kind === "failed").slice(-FAILURES_SHOWN);
      return {
        run,
        ...view,
        ...(shape && { version: shape.version, shape }),
        shapeStored: shape !== undefined,
        failures: failures.reverse().map(failedAttempt),
        truncated,
      };
    },

    async state({ runId, sequence }, maySee) {
      await findVisible(runId, maySee);
      const recent = await store.history(runId, { limit: PAGE, ...(sequence !== undefined && { before: sequence + 1 }) });
      const checkpoint =
        sequence === undefined
          ? (recent.find(({ branch }) => branch === "") ?? recent[0])
          : recent.find((info) => info.sequence === sequence);
      if (!checkpoint) throw checkpointNotFoundError(runId, sequence ?? "__start__");
      const before = recent.find((info) => info.sequence < checkpoint.sequence && isBefore(info.branch, checkpoint.branch));
      const [after, earlier] = await Promise.all([readState(store, checkpoint), before && readState(store, before)]);
      const compared = after && earlier ? compareStates(earlier.value, after.value, LIMITS.runStateChanges) : undefined;
      return {
        checkpoint,
        ...(before && { previous: before.sequence }),
        ...(after && { state: after }),
        changes: compared?.changes ?? [],
        moreChanges: compared?.more ?? false,
      };
    },
  };
}

/** Returns whether a line precedes another: it is the same one, or the one that it started from. */
function isBefore(earlier: string, later: string): boolean {
  return earlier === later || earlier === "" || later.startsWith(`${earlier}/`);
}

async function readState(store: RunStore, { runId, sequence, size }: RunCheckpointInfo): Promise<{ readonly value: unknown } | undefined> {
  if (size > STATE_SHOWN_BYTES) return undefined;
  return { value: decodeState((await store.loadAt(runId, sequence)).state) };
}

/** Returns the steps up to a sequence, oldest first. */
async function readSteps(
  store: RunStore,
  runId: string,
  sequence: number | undefined,
): Promise<{ steps: RunCheckpointInfo[]; truncated: boolean }> {
  const steps: RunCheckpointInfo[] = [];
  for (let before = sequence === undefined ? undefined : sequence + 1; ; before = steps.at(-1)!.sequence) {
    const page = await store.history(runId, { limit: PAGE, before });
    steps.push(...page);
    const truncated = steps.length >= LIMITS.runPathCheckpoints;
    if (page.length < PAGE || truncated) return { steps: steps.reverse(), truncated };
  }
}

function failedAttempt({ sequence, nodeId: node, branch, attempt, note, timestamp }: RunCheckpointInfo): FailedAttempt {
  return { sequence, node, branch, attempt, message: noteOf(note).message ?? "", timestamp };
}

/** Returns a shape of the steps that the main line took, for a run whose shape is not stored. */
function shapeOfSteps({ graph, fingerprint }: Run, steps: readonly RunCheckpointInfo[]): GraphShape {
  const main = steps.filter(({ branch, kind }) => branch === "" && (kind === "node" || kind === "start"));
  const names = new Set(main.flatMap(({ nodeId, nextNode }) => [nodeId, ...(nextNode === null ? [] : [nextNode])]));
  for (const end of ["__start__", "__end__", "__route__"]) names.delete(end);
  const edges = new Map(
    main.flatMap(({ nodeId: from, nextNode: to }) =>
      to === null || to === "__route__" ? [] : [[`${from}\n${to}`, { from, to, kind: "edge" as const }] as const],
    ),
  );
  const entry = main.find(({ kind }) => kind === "start")?.nextNode ?? [...names][0] ?? "";
  return { graph, fingerprint, version: "", entry, nodes: [...names].map((name) => ({ name, type: "step" })), edges: [...edges.values()] };
}
