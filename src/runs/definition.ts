import type { RunError } from "./run-error.ts";

/** The names of the two ends of every graph. They cannot be used for nodes. */
export const START = "__start__";
/** The target of an edge that ends the run. */
export const END = "__end__";
/** The next node of a checkpoint whose router failed. Resuming calls the router again. */
export const ROUTE_AGAIN = "__route__";
export const RESERVED = [START, END, ROUTE_AGAIN];

/** The context of a step. */
export interface StepContext {
  readonly runId: string;
  readonly node: string;
  /** The attempt, from 1. */
  readonly attempt: number;
  /** The number of steps of this line, including this one. */
  readonly step: number;
  /** Empty on the main line. */
  readonly branch: string;
  /** Aborted when the run is cancelled, times out, or loses its lease. */
  readonly signal: AbortSignal;
  /**
   * Equal when this attempt is repeated after a crash, and unique otherwise. Pass it to services that detect repeated requests, so
   * that a side effect that was executed but not recorded is not executed twice.
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

/** The kind of a step's failure, for retry rules: a Cairn error's code, `timeout`, `bug` for errors of the language itself, else `error`. */
export type FailureKind = string;

/** When and how often a failed step is retried. */
export interface RetryRule {
  /** The maximum number of attempts. */
  readonly attempts: number;
  /** Only these failures; without it all but `bug`, `invalid_input` and `cancelled`. */
  readonly on?: readonly FailureKind[] | ((error: unknown) => boolean);
  /** The delay before the second attempt. It grows by `factor` up to `maxBackoffMs`, with a random jitter of up to half. */
  readonly backoffMs?: number;
  readonly factor?: number;
  readonly maxBackoffMs?: number;
}

/** Time limit and retries of a node. */
export interface NodeOptions {
  readonly timeoutMs?: number;
  /** The first rule that matches a failure applies. */
  readonly retry?: RetryRule | readonly RetryRule[];
}

/** Describes the branches of a fork and how their results are merged. */
export interface ForkOptions<S, B extends string> {
  /** The branches, each with its first node. They run concurrently, each with a copy of the state. */
  readonly branches: Readonly<Record<B, string>>;
  /** The node at which every branch ends and the run continues. */
  readonly join: string;
  /** Merges the results of the branches into one state. In `collect` mode, `failures` has the failed branches. */
  readonly merge: (before: S, results: Readonly<Record<B, S>>, failures: Readonly<Partial<Record<B, RunError<S>>>>) => S | Promise<S>;
  /** Whether a failure aborts the other branches (default), or all of them run to their end. */
  readonly onError?: "fail-fast" | "collect";
  /** The number of branches that run concurrently; all by default. */
  readonly concurrency?: number;
}

/** Converts between the states of the outer and the inner graph. */
export interface SubgraphOptions<S, T> {
  /** The state the inner graph begins with. */
  readonly enter: (state: S) => T;
  /** Returns the state with which the outer graph continues. */
  readonly leave: (state: S, result: T) => S;
}

/** The internal definition of a node. */
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

/** The outgoing edge of a node: one target, or a router with several. */
export type Exit = { readonly to: string } | { readonly router: Router<never>; readonly targets: readonly string[] };

export interface GraphDefinition {
  readonly name: string;
  readonly version: string;
  readonly entry: string;
  readonly nodes: ReadonlyMap<string, NodeDefinition>;
  readonly exits: ReadonlyMap<string, Exit>;
  /** Validates an external state: the input, an override, or a stored state. */
  readonly parse: ((state: unknown) => unknown) | undefined;
  readonly fingerprint: string;
}

/** Returns all nodes that can follow a node, including the first nodes of a fork's branches. */
export function successors(node: NodeDefinition | undefined, exit: Exit | undefined): readonly string[] {
  const next = exit === undefined ? [] : "to" in exit ? [exit.to] : exit.targets;
  return node?.type === "fork" ? [...node.branches.map(([, start]) => start), ...next] : next;
}
