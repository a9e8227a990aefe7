import type { GraphShape, ShapeEdge, ShapeNode } from "../model/graph-shape.ts";
import { type GraphDefinition, type NodeDefinition, START } from "./definition.ts";

/** Returns the shape of a graph: what another process needs to draw its runs. */
export function shapeOf({ name, fingerprint, version, entry, nodes, exits }: GraphDefinition): GraphShape {
  const edges: ShapeEdge[] = [{ from: START, to: entry, kind: "edge" }];
  for (const [from, exit] of exits) {
    const node = nodes.get(from);
    if (node?.type === "fork") for (const [label, to] of node.branches) edges.push({ from, to, kind: "fork", label });
    if (!("to" in exit)) for (const to of exit.targets) edges.push({ from, to, kind: "branch" });
    else edges.push({ from, to: exit.to, kind: node?.type === "fork" ? "join" : "edge" });
  }
  return { graph: name, fingerprint, version, entry, nodes: [...nodes.values()].map(shapeNode), edges };
}

function shapeNode(node: NodeDefinition): ShapeNode {
  const { name, type } = node;
  if (node.type === "graph") return { name, type, inner: shapeOf(node.graph) };
  if (node.type === "fork") return { name, type };
  const attempts = Math.max(1, ...node.retry.map((rule) => rule.attempts));
  return {
    name,
    type,
    ...(attempts > 1 && { attempts }),
    ...(node.timeoutMs !== undefined && { timeoutMs: node.timeoutMs }),
  };
}
