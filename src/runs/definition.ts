import type { RunError } from "./run-error.ts";

/** The names of the two ends of every graph. They cannot be used for nodes. */
export const START = "__start__";
/** The target of an edge that ends the run. */
export const END = "__end__";
/** Stands in a checkpoint for a next node that is not known yet, because the router failed: resuming asks it again. */
export const ROUTE_AGAIN = "__route__";
export const RESERVED = [START, END, ROUTE_AGAIN];

/** The context of a step. */
export interface StepContext {
  readonly runId: string;
  readonly node: string;
  /** Which try this is, from 1. */
  readonly attempt: number;
  /** How many steps this line will have taken when this one is done. */
  readonly step: number;
  /** Empty on the main line. */
  readonly branch: string;
  /** Aborted when the run is cancelled, out of time, or no longer held by this process. */
  readonly signal: AbortSignal;
  /**
   * The same when this try is made again after a crash, and never the same for another. Hand it to services that
   * recognise a repeated request, and a side effect that was done but not recorded is not done twice.
   */
  readonly idempotencyKey: string;
  /** Pauses the run until someone answers with `resume(runId, { input })`. The step then runs again from its beginning, and this call returns the answer. */
  interrupt<Answer = unknown>(question?: unknown): Answer;
  /** Emits an event to the observers of the run. */
  progress(data: unknown): void;
}

/** The work of a node: returns the next state and does not change its input. */
export type Step<S> = (state: S, context: StepContext) => S | Promise<S>;
/** Returns the name of the next node. */
export type Router<S> = (state: S) => string | Promise<string>;

/** The kind of a step's failure, for choosing whether to try again: a Cairn error's code, `timeout`, `bug` for errors of the language itself, else `error`. */
export type FailureKind = string;

/** When and how often a failed step is tried again. */
export interface RetryRule {
  /** How many tries in all. */
  readonly attempts: number;
  /** Only these failures; without it all but `bug`, `invalid_input` and `cancelled`. */
  readonly on?: readonly FailureKind[] | ((error: unknown) => boolean);
  /** The wait before the second try; it grows by `factor` up to `maxBackoffMs`, and is spread at random between half and all of it. */
  readonly backoffMs?: number;
  readonly factor?: number;
  readonly maxBackoffMs?: number;
}

/** Time limit and retries of a node. */
export interface NodeOptions {
  readonly timeoutMs?: number;
  /** The first rule that fits a failure is the one that counts. */
  readonly retry?: RetryRule | readonly RetryRule[];
}

/** Describes the branches of a fork and how their results are merged. */
export interface ForkOptions<S, B extends string> {
  /** The branches, each with the node it begins at. They run at the same time, each with a copy of the state. */
  readonly branches: Readonly<Record<B, string>>;
  /** The node at which every branch ends and the run continues. */
  readonly join: string;
  /** Makes one state of what the branches came to. In `collect` mode the branches that failed are in `failures`. */
  readonly merge: (before: S, results: Readonly<Record<B, S>>, failures: Readonly<Partial<Record<B, RunError<S>>>>) => S | Promise<S>;
  /** Whether one failure ends the others at once (default), or all of them run to their end. */
  readonly onError?: "fail-fast" | "collect";
  /** How many branches run at once; all by default. */
  readonly concurrency?: number;
}

/** Converts between the states of the outer and the inner graph. */
export interface SubgraphOptions<S, T> {
  /** The state the inner graph begins with. */
  readonly enter: (state: S) => T;
  /** Returns the state with which the outer graph continues. */
  readonly leave: (state: S, result: T) => S;
}

/** A node as the engine sees it. */
export type NodeDefinition =
  | {
      readonly type: "step";
      readonly name: string;
      readonly run: Step<never>;
      readonly timeoutMs?: number;
      readonly retry: readonly RetryRule[];
    }
  | {
      readonly type: "fork";
      readonly name: string;
      readonly branches: readonly (readonly [name: string, start: string])[];
      readonly join: string;
      readonly merge: ForkOptions<never, string>["merge"];
      readonly onError: "fail-fast" | "collect";
      readonly concurrency: number;
    }
  | {
      readonly type: "graph";
      readonly name: string;
      readonly graph: GraphDefinition;
      readonly enter: (state: never) => unknown;
      readonly leave: (state: never, result: never) => unknown;
    };

/** Where a node leads: to one node, or to one of several by asking a router. */
export type Exit = { readonly to: string } | { readonly router: Router<never>; readonly targets: readonly string[] };

export interface GraphDefinition {
  readonly name: string;
  readonly version: string;
  readonly entry: string;
  readonly nodes: ReadonlyMap<string, NodeDefinition>;
  readonly exits: ReadonlyMap<string, Exit>;
  /** Checks a state that comes from outside: the input, an override, what was stored. */
  readonly parse: ((state: unknown) => unknown) | undefined;
  readonly fingerprint: string;
}

/** All nodes a node can lead to, the start of a fork's branches included. */
export function successors(node: NodeDefinition | undefined, exit: Exit | undefined): readonly string[] {
  const next = exit === undefined ? [] : "to" in exit ? [exit.to] : exit.targets;
  return node?.type === "fork" ? [...node.branches.map(([, start]) => start), ...next] : next;
}
