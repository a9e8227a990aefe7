/** The shape of a graph: enough to draw a run of it in a process that does not have its code. */
export interface GraphShape {
  readonly graph: string;
  readonly fingerprint: string;
  readonly version: string;
  readonly entry: string;
  readonly nodes: readonly ShapeNode[];
  readonly edges: readonly ShapeEdge[];
}

/** A node of a shape. A sub-graph has the shape of its inner graph. */
export interface ShapeNode {
  readonly name: string;
  readonly type: "step" | "fork" | "graph";
  /** The maximum number of attempts, if the node retries. */
  readonly attempts?: number | undefined;
  readonly timeoutMs?: number | undefined;
  readonly inner?: GraphShape | undefined;
}

/**
 * An edge of a shape, with `__start__` and `__end__` as the ends of the graph. `branch` edges are the targets of a router, `fork` edges
 * lead to the branches of a fork, and a `join` edge leads from a fork to the node where its branches end.
 */
export interface ShapeEdge {
  readonly from: string;
  readonly to: string;
  readonly kind: "edge" | "branch" | "fork" | "join";
  /** The name of a fork's branch. */
  readonly label?: string | undefined;
}
