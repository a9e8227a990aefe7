import { graphlib, layout } from "@dagrejs/dagre";
import type { Output } from "../../api/call.ts";

type RunGraph = Output<"run_graph">;
type GraphNode = RunGraph["nodes"][number];
type GraphEdge = RunGraph["edges"][number];

export interface PlacedNode extends GraphNode {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface PlacedEdge extends GraphEdge {
  readonly points: readonly { readonly x: number; readonly y: number }[];
}

export interface Placed {
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly PlacedNode[];
  readonly edges: readonly PlacedEdge[];
}

type Box = Pick<PlacedNode, "x" | "y" | "width" | "height">;
type Line = Pick<PlacedEdge, "points">;

const CHAR_PX = 7.2;
const HEIGHT = 34;
/** How far the arrow from a node to itself leads away from it. */
const LOOP_PX = 34;

/** Places the nodes of a graph in layers, from the top down. */
export function placeGraph({ nodes, edges }: Pick<RunGraph, "nodes" | "edges">): Placed {
  const graph = new graphlib.Graph().setGraph({ rankdir: "TB", nodesep: 28, ranksep: 34, marginx: 16, marginy: 8 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id, name } of nodes) graph.setNode(id, { width: Math.max(64, name.length * CHAR_PX + 44), height: HEIGHT });
  for (const { from, to } of edges) if (from !== to) graph.setEdge(from, to);
  layout(graph);
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return {
    width: Number.isFinite(width) ? width + LOOP_PX : 0,
    height: Number.isFinite(height) ? height : 0,
    nodes: nodes.map((node) => ({ ...node, ...(graph.node(node.id) as Box) })),
    edges: edges.map((edge) => ({
      ...edge,
      points: edge.from === edge.to ? loopPoints(graph.node(edge.from) as Box) : (graph.edge(edge.from, edge.to) as Line).points,
    })),
  };
}

/** Returns an arc from the right side of a node back to it. */
function loopPoints({ x, y, width }: Box): Line["points"] {
  const side = x + width / 2;
  return [
    { x: side, y: y + 8 },
    { x: side + LOOP_PX, y: y + 14 },
    { x: side + LOOP_PX, y: y - 14 },
    { x: side, y: y - 8 },
  ];
}
