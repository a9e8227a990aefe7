import { CairnError } from "../model/errors.ts";
import { framedHash } from "../model/ids.ts";
import { type CompiledGraph, compiledGraph } from "./compiled.ts";
import {
  END,
  type Exit,
  type ForkOptions,
  type GraphDefinition,
  type NodeDefinition,
  type NodeOptions,
  type Router,
  type Step,
  type SubgraphOptions,
} from "./definition.ts";
import { faultsOf, type GraphFault, nameFault } from "./faults.ts";

/** Names a graph and validates its state. */
export interface GraphOptions<S> {
  /** The name by which runs of this graph are found. */
  readonly name?: string;
  /** Part of the fingerprint. Change it when the steps change their meaning but not their names. */
  readonly version?: string;
  /** Validates an external state (the input, an override, a stored state) and throws if it is invalid. */
  readonly parse?: (state: unknown) => S;
}

/** Builds a graph. `compile` validates it. */
export interface GraphBuilder<S> {
  node(name: string, run: Step<S>, options?: NodeOptions): GraphBuilder<S>;
  /** Adds a graph as one node; its steps are checkpointed as part of the outer run. */
  subgraph<T>(name: string, graph: CompiledGraph<T>, options: SubgraphOptions<S, T>): GraphBuilder<S>;
  /** Adds a fork: its branches run concurrently, and their results are merged into one state. */
  fork<B extends string>(name: string, options: ForkOptions<S, B>): GraphBuilder<S>;
  edge(from: string, to: string): GraphBuilder<S>;
  /** Adds a conditional edge: the router returns one of `targets`. */
  branch(from: string, router: Router<S>, targets: readonly string[]): GraphBuilder<S>;
  entry(name: string): GraphBuilder<S>;
  /** Returns an immutable graph, or throws one error that lists every fault. */
  compile(): CompiledGraph<S>;
}

/** Creates a builder for a graph with states of type `S`. */
export function graph<S>({ name = "graph", version = "1", parse }: GraphOptions<S> = {}): GraphBuilder<S> {
  const nodes = new Map<string, NodeDefinition>();
  const exits = new Map<string, Exit>();
  const faults: GraphFault[] = [];
  let start: string | undefined;

  const addNode = (node: NodeDefinition) => {
    const fault = nameFault(node.name, nodes.has(node.name));
    if (fault) faults.push(fault);
    else nodes.set(node.name, Object.freeze(node));
    return builder;
  };
  const addExit = (from: string, exit: Exit) => {
    if (exits.has(from))
      faults.push({
        kind: "second_exit",
        node: from,
        message: `${JSON.stringify(from)} has two ways out: use branch() to choose, or fork() to take both.`,
      });
    else exits.set(from, Object.freeze(exit));
    return builder;
  };

  const builder: GraphBuilder<S> = {
    node: (name, run, { timeoutMs, retry = [] } = {}) =>
      addNode({
        type: "step",
        name,
        run: run as unknown as Step<never>,
        retry: (Array.isArray(retry) ? [...retry] : [retry]) as NodeDefinition extends { retry: infer R } ? R : never,
        ...(timeoutMs === undefined ? {} : { timeoutMs }),
      }),
    subgraph: (name, inner, { enter, leave }) =>
      addNode({ type: "graph", name, graph: inner.definition, enter: enter as (state: never) => unknown, leave: leave as never }),
    fork: (name, { branches, join, merge, onError = "fail-fast", concurrency = Number.POSITIVE_INFINITY }) => {
      const list = Object.entries<string>(branches);
      for (const [branch] of list) {
        const fault = nameFault(branch, false);
        if (fault) faults.push(fault);
      }
      addNode({ type: "fork", name, branches: list, join, merge: merge as never, onError, concurrency: Math.max(1, concurrency) });
      return addExit(name, { to: join });
    },
    edge: (from, to) => addExit(from, { to }),
    branch: (from, router, targets) => addExit(from, { router: router as Router<never>, targets: [...targets] }),
    entry: (name) => {
      if (start !== undefined && start !== name)
        faults.push({
          kind: "no_entry",
          node: name,
          message: `There are two entries, ${JSON.stringify(start)} and ${JSON.stringify(name)}.`,
        });
      start ??= name;
      return builder;
    },
    compile: () => {
      const all = [...faults, ...faultsOf(start, nodes, exits)];
      if (all.length > 0)
        throw new CairnError(
          "invalid_input",
          `The graph ${JSON.stringify(name)} has ${all.length} faults. ${all.map((fault) => fault.message).join(" ")}`,
          {
            details: { faults: all },
          },
        );
      const definition: GraphDefinition = Object.freeze({
        name,
        version,
        entry: start!,
        nodes: new Map(nodes),
        exits: new Map(exits),
        parse,
        fingerprint: fingerprintOf(name, version, start!, nodes, exits),
      });
      return compiledGraph<S>(definition);
    },
  };
  return builder;
}

/** Hashes the nodes and edges of a graph, independent of the order of the calls. The code of steps is not included; change `version` for that. */
function fingerprintOf(
  name: string,
  version: string,
  entry: string,
  nodes: ReadonlyMap<string, NodeDefinition>,
  exits: ReadonlyMap<string, Exit>,
): string {
  const parts: string[] = [name, version, entry, END];
  for (const key of [...nodes.keys()].sort()) {
    const node = nodes.get(key)!;
    const exit = exits.get(key)!;
    parts.push(key, node.type, "to" in exit ? exit.to : `?${JSON.stringify([...exit.targets].sort())}`);
    if (node.type === "fork") parts.push(JSON.stringify([...node.branches].sort()), node.onError);
    if (node.type === "graph") parts.push(node.graph.fingerprint);
  }
  return framedHash(...parts).slice(0, 32);
}
