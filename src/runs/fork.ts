import { decodeState } from "../text/plain-data.ts";
import { END, type GraphDefinition, type NodeDefinition } from "./definition.ts";
import type { Interrupt } from "./events.ts";
import type { Execution } from "./execution.ts";
import { HandedOver } from "./hand-over.ts";
import { type Line, lineFrom } from "./line.ts";
import { messageOf, RunError } from "./run-error.ts";
import { Scope } from "./scope.ts";
import { Paused } from "./step.ts";

/** Runs the branches concurrently, each with its own line and state, and merges the results of the branches. */
export async function runFork(execution: Execution, fork: NodeDefinition & { type: "fork" }, line: Line): Promise<unknown> {
  const scope = new Scope(line.scope);
  const results: Record<string, unknown> = {};
  const failures: Record<string, RunError> = {};
  const interrupts: Interrupt[] = [];
  let first: RunError | undefined;
  let handedOver: HandedOver | undefined;

  const runBranch = async ([name, start]: readonly [string, string]): Promise<void> => {
    const branch = `${line.branch && `${line.branch}/`}${fork.name}#${line.step + 1}/${name}`;
    try {
      const child = await innerLine(execution, { graph: line.graph, branch, stop: fork.join, scope }, start, () => copyOf(line));
      results[name] = await execution.runLine(child);
    } catch (error) {
      if (error instanceof Paused) {
        interrupts.push(...error.interrupts);
        return;
      }
      if (error instanceof HandedOver) {
        handedOver = error; // the other branches finish their steps too
        return;
      }
      const failure = execution.failure(error, line);
      failures[name] = failure;
      first ??= failure;
      // Without the lease nothing can be saved, so the other branches stop too.
      if (fork.onError === "fail-fast" || failure.kind === "lease") scope.abort(failure);
    }
  };

  await eachOf(fork.branches, fork.concurrency, runBranch);
  scope.close();
  if (line.scope.aborted) throw execution.failure(line.scope.reason, line);
  const failed = (message: string, cause: unknown) =>
    new RunError("fork", message, { runId: execution.runId, node: fork.name, branch: line.branch, state: line.state, cause });
  if (first && (fork.onError === "fail-fast" || first.kind === "lease")) {
    if (first.kind === "lease" || first.kind === "checkpoint") throw first;
    throw failed(`A branch of ${JSON.stringify(fork.name)} failed: ${first.message}`, first);
  }
  if (handedOver) throw handedOver;
  if (interrupts.length > 0) throw new Paused(interrupts);
  try {
    return await fork.merge(line.state as never, results as never, failures as never);
  } catch (cause) {
    throw failed(`The branches of ${JSON.stringify(fork.name)} could not be merged: ${messageOf(cause)}`, cause);
  }
}

/** Runs a whole graph as one step of another. */
export async function runSubgraph(execution: Execution, node: NodeDefinition & { type: "graph" }, line: Line): Promise<unknown> {
  const branch = `${line.branch && `${line.branch}/`}${node.name}#${line.step + 1}`;
  const inner = await innerLine(execution, { graph: node.graph, branch, stop: END, scope: line.scope }, node.graph.entry, () =>
    node.enter(line.state as never),
  );
  const result = await execution.runLine(inner);
  return node.leave(line.state as never, result as never);
}

/** Returns an inner line: a new one, or one restored from the checkpoint of a resumed run. */
async function innerLine(
  execution: Execution,
  fixed: { graph: GraphDefinition; branch: string; stop: string; scope: Scope },
  entry: string,
  initial: () => unknown,
): Promise<Line> {
  const stored = execution.lines.get(fixed.branch);
  if (stored && execution.store) return lineFrom(await execution.store.loadAt(execution.runId, stored.sequence), fixed);
  return { ...fixed, state: initial(), encoded: undefined, next: entry, previous: null, step: 0, failed: 0, answers: [] };
}

function copyOf(line: Line): unknown {
  return line.encoded ? decodeState(line.encoded) : structuredClone(line.state);
}

async function eachOf<T>(items: readonly T[], concurrency: number, work: (item: T) => Promise<void>): Promise<void> {
  const waiting = items.values();
  const worker = async () => {
    for (const item of waiting) await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, worker));
}
