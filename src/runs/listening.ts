import type { RunWorker, WorkerRegistry } from "../ports/run-queue.ts";
import { hasEnded } from "../scheduling/owner.ts";
import { shellWord } from "../text/shell-word.ts";
import type { MaySee } from "./service.ts";

/** Whether a run will be continued without further action. */
export interface Listening {
  /** The number of workers that listen for this version of the graph. */
  readonly listening: number;
  /** What to do if none listens. */
  readonly hint?: string | undefined;
}

/** Workers that one look reads. */
const LOOKED_AT = 100;

/** Returns whether a worker listens for a version of a graph; otherwise how to start one. Only callers with access to all projects see its command. */
export async function findListening(
  store: WorkerRegistry,
  { graph, fingerprint }: { readonly graph: string; readonly fingerprint: string },
  maySee?: MaySee,
): Promise<Listening> {
  const workers = await store.listWorkers({ graph, limit: LOOKED_AT });
  const listening = workers.filter((worker) => worker.fingerprint === fingerprint && isListening(worker)).length;
  return listening > 0 ? { listening } : { listening, hint: hintOf(maySee?.(null) === false ? [] : workers, graph, fingerprint) };
}

/** Returns whether the worker still listens: a process of this machine that was killed does not, although its announcement has not expired. */
export function isListening({ listening, owner }: RunWorker): boolean {
  return listening && !hasEnded(owner);
}

function hintOf(workers: readonly RunWorker[], graph: string, fingerprint: string): string {
  const name = JSON.stringify(graph);
  const changed = workers.find((worker) => isListening(worker));
  if (changed)
    return `The workers of the graph ${name} have another version of it (${changed.fingerprint.slice(0, 8)}, the run has ${fingerprint.slice(0, 8)}). Start a worker with the version of the run.`;
  const last =
    workers.find(({ command, fingerprint: of }) => command !== null && of === fingerprint) ??
    workers.find(({ command }) => command !== null);
  const command = last?.command ?? "cairn run work <module that exports the graph>";
  const folder = last?.folder ? `cd ${shellWord(last.folder)} && ` : "";
  return `No worker listens for the graph ${name}. Run: ${folder}${command}`;
}
