import { CairnError } from "../model/errors.ts";
import type { Run, RunCheckpoint, RunCheckpointInfo } from "../model/run.ts";
import { checkpointNotFoundError, runNotFoundError } from "../model/run-rules.ts";
import type { RunStore } from "../ports/run-store.ts";
import { decodeState } from "../text/plain-data.ts";
import type { GraphDefinition } from "./definition.ts";
import { messageOf, RunError } from "./run-error.ts";

/** The position of a run: its newest main-line checkpoint, and the newest of every line started since. */
export interface Position {
  readonly root: RunCheckpointInfo;
  readonly lines: ReadonlyMap<string, RunCheckpointInfo>;
}

const PAGE = 100;

export async function positionOf(store: RunStore, runId: string): Promise<Position> {
  const lines = new Map<string, RunCheckpointInfo>();
  for await (const info of historyOf(store, runId)) {
    if (!lines.has(info.branch)) lines.set(info.branch, info);
    if (info.branch === "") return { root: info, lines };
  }
  throw checkpointNotFoundError(runId, "__start__");
}

/** Returns the run; raises an error if it belongs to another graph. */
export async function runOfGraph(store: RunStore, runId: string, graph: GraphDefinition, acceptChange: boolean): Promise<Run> {
  const run = await store.getRun(runId);
  if (!run) throw runNotFoundError(runId);
  if ((run.graph !== graph.name || run.fingerprint !== graph.fingerprint) && !acceptChange) {
    const { root } = await positionOf(store, runId);
    throw new RunError(
      "graph_changed",
      `The run ${JSON.stringify(runId)} was started with a different graph (${JSON.stringify(run.graph)} ${run.fingerprint.slice(0, 8)}, now ${JSON.stringify(graph.name)} ${graph.fingerprint.slice(0, 8)}). If its steps still mean the same, resume with acceptGraphChange: true.`,
      {
        runId,
        node: root.nextNode ?? undefined,
        state: await stateAt(store, root),
        details: { stored: run.fingerprint, current: graph.fingerprint },
      },
    );
  }
  return run;
}

/** Returns the checkpoint to resume from and the next node. */
export async function pointOf(
  store: RunStore,
  runId: string,
  {
    sequence,
    node,
    replay = false,
  }: { readonly sequence?: number | undefined; readonly node?: string | undefined; readonly replay?: boolean | undefined },
): Promise<{ checkpoint: RunCheckpoint; next: string }> {
  if ((sequence === undefined) === (node === undefined))
    throw new CairnError("invalid_input", "resumeFrom: name either a sequence or a node to go back to.");
  let target: RunCheckpointInfo | undefined;
  for await (const info of historyOf(store, runId)) {
    if (target === undefined) {
      if (sequence !== undefined ? info.sequence !== sequence : !(info.nodeId === node && (info.kind === "node" || info.kind === "start")))
        continue;
      if (info.branch !== "")
        throw new CairnError(
          "invalid_input",
          `The checkpoint ${info.sequence} belongs to the branch ${JSON.stringify(info.branch)}. Choose a checkpoint of the main line.`,
        );
      target = info;
      if (!replay) break;
    } else if (
      info.branch === "" &&
      info.nextNode === target.nodeId &&
      (info.kind === "node" || info.kind === "start" || info.kind === "rewind")
    ) {
      return { checkpoint: await store.loadAt(runId, info.sequence), next: target.nodeId };
    }
  }
  if (!target || replay) throw checkpointNotFoundError(runId, sequence ?? node!);
  const next = target.nextNode;
  if (next === null) throw new CairnError("invalid_input", `The checkpoint ${target.sequence} does not record the next node.`);
  return { checkpoint: await store.loadAt(runId, target.sequence), next };
}

/** Validates an external state with the graph's `parse`. */
export function checkedState(graph: GraphDefinition, state: unknown, runId: string): unknown {
  if (!graph.parse) return state;
  try {
    return graph.parse(state);
  } catch (cause) {
    throw new RunError("state", `The state is not valid for this graph: ${messageOf(cause)}`, {
      code: "invalid_input",
      runId,
      state,
      cause,
    });
  }
}

export async function stateAt(store: RunStore, info: RunCheckpointInfo): Promise<unknown> {
  return decodeState((await store.loadAt(info.runId, info.sequence)).state);
}

async function* historyOf(store: RunStore, runId: string): AsyncGenerator<RunCheckpointInfo> {
  for (let before: number | undefined; ; ) {
    const page = await store.history(runId, { before, limit: PAGE });
    yield* page;
    if (page.length < PAGE) return;
    before = page.at(-1)!.sequence;
  }
}
