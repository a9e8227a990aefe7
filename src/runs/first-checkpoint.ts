import type { NewRun, RunStore } from "../ports/run-store.ts";
import { encodeText } from "../text/plain-data.ts";
import { START } from "./definition.ts";

/** Returns the first checkpoint of a queued run: the node it starts with, and its state without secrets if the store removes them. */
export function firstCheckpoint(store: Pick<RunStore, "redactState">, next: string, state: unknown): NewRun["first"] {
  const stored = store.redactState ? store.redactState(state) : state;
  return { nodeId: START, nextNode: next, kind: "start", step: 0, state: encodeText(stored) };
}
