import { isBlank } from "../text/untrusted.ts";
import { END, type Exit, type NodeDefinition, RESERVED, successors } from "./definition.ts";

/** One fault that `compile` found in a graph. */
export interface GraphFault {
  readonly kind:
    | "no_entry"
    | "unknown_node"
    | "duplicate_name"
    | "reserved_name"
    | "invalid_name"
    | "no_exit"
    | "second_exit"
    | "no_path_to_end"
    | "cycle_without_exit"
    | "bad_fork";
  readonly node?: string;
  readonly message: string;
}

/** Returns all faults of a graph at once. */
export function faultsOf(
  entry: string | undefined,
  nodes: ReadonlyMap<string, NodeDefinition>,
  exits: ReadonlyMap<string, Exit>,
): GraphFault[] {
  const faults: GraphFault[] = [];
  const known = (name: string) => nodes.has(name) || name === END;
  const unknown = (node: string, target: string, where: string) =>
    faults.push({
      kind: "unknown_node",
      node: target,
      message: `${where} of ${quoteName(node)} leads to ${quoteName(target)}, which is not a node.`,
    });

  if (entry === undefined) faults.push({ kind: "no_entry", message: "There is no entry. Set it with entry()." });
  else if (!nodes.has(entry)) faults.push({ kind: "unknown_node", node: entry, message: `The entry ${quoteName(entry)} is not a node.` });

  for (const [from, exit] of exits) {
    if (!nodes.has(from))
      faults.push({ kind: "unknown_node", node: from, message: `An edge starts at ${quoteName(from)}, which is not a node.` });
    for (const target of "to" in exit ? [exit.to] : exit.targets) if (!known(target)) unknown(from, target, "An edge");
  }
  for (const node of nodes.values()) {
    if (!exits.has(node.name))
      faults.push({
        kind: "no_exit",
        node: node.name,
        message: `${quoteName(node.name)} leads nowhere: give it an edge, to END if it is the last.`,
      });
    if (node.type !== "fork") continue;
    for (const [branch, start] of node.branches) if (!known(start)) unknown(node.name, start, `The branch ${quoteName(branch)}`);
  }

  const reachesEnd = findPredecessors(END, nodes, exits);
  for (const node of nodes.values()) {
    // A node without an edge, or with an unknown target, was already reported.
    if (reachesEnd.has(node.name) || !exits.has(node.name) || successors(node, exits.get(node.name)).some((next) => !known(next))) continue;
    faults.push(
      onCycle(node.name, nodes, exits)
        ? { kind: "cycle_without_exit", node: node.name, message: `${quoteName(node.name)} is in a cycle that nothing leads out of.` }
        : { kind: "no_path_to_end", node: node.name, message: `No path leads from ${quoteName(node.name)} to the end.` },
    );
  }
  for (const node of nodes.values()) if (node.type === "fork") faults.push(...forkFaults(node, nodes, exits));
  return faults;
}

export function nameFault(name: string, taken: boolean): GraphFault | undefined {
  if (RESERVED.includes(name)) return { kind: "reserved_name", node: name, message: `The name ${quoteName(name)} is reserved.` };
  if (!/^[^\s#/][^#/]{0,99}$/u.test(name) || isBlank(name))
    return {
      kind: "invalid_name",
      node: name,
      message: `${quoteName(name)} is not a name: 1 to 100 characters, not blank, not beginning with a space, without # and /.`,
    };
  return taken ? { kind: "duplicate_name", node: name, message: `There are two nodes named ${quoteName(name)}.` } : undefined;
}

function forkFaults(
  fork: NodeDefinition & { type: "fork" },
  nodes: ReadonlyMap<string, NodeDefinition>,
  exits: ReadonlyMap<string, Exit>,
): GraphFault[] {
  const faults: GraphFault[] = [];
  const bad = (message: string) => faults.push({ kind: "bad_fork", node: fork.name, message });
  if (fork.branches.length === 0) bad(`The fork ${quoteName(fork.name)} has no branches.`);
  for (const [branch, start] of fork.branches) {
    if (!nodes.has(start)) continue;
    const inside = findReachable(start, fork.join, nodes, exits);
    if (start === fork.join) bad(`The branch ${quoteName(branch)} of ${quoteName(fork.name)} starts at its own join.`);
    else if (!inside.has(fork.join))
      bad(`The branch ${quoteName(branch)} of ${quoteName(fork.name)} never reaches its join ${quoteName(fork.join)}.`);
    if (inside.has(END) && fork.join !== END)
      bad(`The branch ${quoteName(branch)} of ${quoteName(fork.name)} can reach the end without passing its join ${quoteName(fork.join)}.`);
  }
  return faults;
}

/** Returns the nodes that are reachable from a node without passing `stop`. */
function findReachable(
  from: string,
  stop: string,
  nodes: ReadonlyMap<string, NodeDefinition>,
  exits: ReadonlyMap<string, Exit>,
): ReadonlySet<string> {
  const seen = new Set<string>();
  const waiting = [from];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (seen.has(name)) continue;
    seen.add(name);
    if (name !== stop) waiting.push(...successors(nodes.get(name), exits.get(name)));
  }
  return seen;
}

function findPredecessors(
  target: string,
  nodes: ReadonlyMap<string, NodeDefinition>,
  exits: ReadonlyMap<string, Exit>,
): ReadonlySet<string> {
  const before = new Map<string, string[]>();
  for (const node of nodes.values())
    for (const next of successors(node, exits.get(node.name))) before.set(next, [...(before.get(next) ?? []), node.name]);
  const seen = new Set<string>();
  const waiting = [target];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (seen.has(name)) continue;
    seen.add(name);
    waiting.push(...(before.get(name) ?? []));
  }
  return seen;
}

function onCycle(name: string, nodes: ReadonlyMap<string, NodeDefinition>, exits: ReadonlyMap<string, Exit>): boolean {
  return successors(nodes.get(name), exits.get(name)).some((next) => findReachable(next, "", nodes, exits).has(name));
}

function quoteName(name: string): string {
  return JSON.stringify(name);
}
