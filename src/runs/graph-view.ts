import type { GraphShape, ShapeEdge } from "../model/graph-shape.ts";
import type { RunCheckpointInfo, RunStatus } from "../model/run.ts";

/** A node of a drawn run. The nodes of a sub-graph have ids such as `review/approve` and the sub-graph as their parent. */
export interface GraphNode {
  readonly id: string;
  readonly name: string;
  readonly type: "start" | "end" | "step" | "fork" | "graph";
  readonly parent?: string | undefined;
  /** How often the node finished; 2 or more is a loop. */
  readonly visits: number;
  readonly failures: number;
  /** What the run does at the node now; absent elsewhere. */
  readonly position?: "next" | "running" | "waits" | "failed" | undefined;
  readonly attempts?: number | undefined;
  readonly timeoutMs?: number | undefined;
}

/** An edge of a drawn run. */
export interface GraphEdge {
  readonly from: string;
  readonly to: string;
  readonly kind: ShapeEdge["kind"];
  readonly label?: string | undefined;
  /** How often the run took the edge. */
  readonly taken: number;
}

export interface GraphView {
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
}

const START = "__start__";
const END = "__end__";

/** Returns the nodes and edges of a shape with the path of a run through them. `steps` are in the order of their sequence. */
export function viewGraph(shape: GraphShape, steps: readonly RunCheckpointInfo[], status: RunStatus): GraphView {
  const counts = countPath(shape, steps, status);
  const nodes: GraphNode[] = [];
  const edges: GraphEdge[] = [];
  addShape(shape, "", undefined);
  return { nodes, edges };

  function addShape({ nodes: own, edges: between }: GraphShape, prefix: string, parent: string | undefined): void {
    const addNode = (name: string, more: Pick<GraphNode, "type" | "attempts" | "timeoutMs">) => {
      const id = prefix + name;
      const position = counts.positions.get(id);
      nodes.push({
        id,
        name,
        ...more,
        ...(parent !== undefined && { parent }),
        visits: counts.visits.get(id) ?? 0,
        failures: counts.failures.get(id) ?? 0,
        ...(position && { position }),
      });
    };
    addNode(START, { type: "start" });
    for (const { name, type, attempts, timeoutMs, inner } of own) {
      addNode(name, { type, attempts, timeoutMs });
      if (inner) addShape(inner, `${prefix}${name}/`, prefix + name);
    }
    addNode(END, { type: "end" });
    for (const { from, to, kind, label } of between)
      edges.push({
        from: prefix + from,
        to: prefix + to,
        kind,
        ...(label !== undefined && { label }),
        taken: counts.taken.get(edgeKey(prefix + from, prefix + to, label)) ?? 0,
      });
  }
}

interface PathCounts {
  readonly visits: ReadonlyMap<string, number>;
  readonly failures: ReadonlyMap<string, number>;
  readonly taken: ReadonlyMap<string, number>;
  readonly positions: ReadonlyMap<string, GraphNode["position"]>;
}

function countPath(shape: GraphShape, steps: readonly RunCheckpointInfo[], status: RunStatus): PathCounts {
  const [visits, failures, taken] = [new Map<string, number>(), new Map<string, number>(), new Map<string, number>()];
  const newest = new Map<string, { readonly place: Place; readonly step: RunCheckpointInfo }>();
  for (const step of steps) {
    const place = placeOf(shape, step.branch);
    if (!place) continue;
    if (step.branch === "") newest.clear(); // the branches that started before have ended
    const { prefix, entered } = place;
    const id = prefix + step.nodeId;
    if (!newest.has(step.branch) && entered) increment(taken, entered);
    if (step.kind === "failed") increment(failures, id);
    if (step.kind === "start" || step.kind === "node") {
      increment(visits, id);
      if (step.nextNode !== null) {
        if (step.nextNode === END) increment(visits, prefix + END);
        // The edge of a fork's branch to the join is its own; the fork continues from there.
        increment(taken, edgeKey(id, prefix + step.nextNode));
      }
    }
    newest.set(step.branch, { place, step });
  }
  const positions = new Map<string, GraphNode["position"]>();
  for (const { place, step } of newest.values()) {
    const position = positionOf(step, status);
    if (position && step.nextNode !== null && step.nextNode !== END && step.nextNode !== place.stop)
      positions.set(place.prefix + step.nextNode, position);
  }
  return { visits, failures, taken, positions };
}

function positionOf({ kind }: RunCheckpointInfo, status: RunStatus): GraphNode["position"] {
  if (status === "completed") return undefined;
  if (kind === "pause") return "waits";
  if (kind === "failed" && status === "failed") return "failed";
  return status === "running" ? "running" : "next";
}

/** Where a line runs: in which sub-graph, through which edge it was entered, and at which node it ends. */
interface Place {
  readonly prefix: string;
  readonly entered?: string | undefined;
  readonly stop?: string | undefined;
}

/** Finds the graph of a line by its branch: `fan#3/left` is a branch of the fork `fan`, `review#2` is inside the sub-graph `review`. */
function placeOf(shape: GraphShape, branch: string): Place | undefined {
  let [graph, prefix, stop, entered]: [GraphShape, string, string | undefined, string | undefined] = [shape, "", undefined, undefined];
  const parts = branch === "" ? [] : branch.split("/");
  for (let i = 0; i < parts.length; i++) {
    const name = parts[i]!.replace(/#\d+$/, "");
    const node = graph.nodes.find((candidate) => candidate.name === name);
    if (node?.type === "graph" && node.inner) {
      [graph, prefix, stop] = [node.inner, `${prefix}${name}/`, undefined];
      entered = edgeKey(prefix + START, prefix + graph.entry);
    } else if (node?.type === "fork") {
      const label = parts[++i];
      const edge = graph.edges.find(({ from, kind, label: of }) => from === name && kind === "fork" && of === label);
      if (!edge) return undefined;
      entered = edgeKey(prefix + name, prefix + edge.to, label);
      stop = graph.edges.find(({ from, kind }) => from === name && kind === "join")?.to;
    } else return undefined; // the run continued with a changed graph
  }
  return { prefix, entered, stop };
}

function edgeKey(from: string, to: string, label = ""): string {
  return JSON.stringify([from, to, label]);
}

function increment(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
