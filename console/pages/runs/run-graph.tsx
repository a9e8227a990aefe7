import { useMemo } from "preact/hooks";
import { Failure } from "../../parts/failure.tsx";
import { formatPlural } from "../../parts/format.ts";
import { useCall } from "../../state/use-call.ts";
import { isChangeOf } from "./run-events.ts";
import { type PlacedEdge, type PlacedNode, placeGraph } from "./run-layout.ts";

interface RunGraphProps {
  readonly runId: string;
  /** The step up to which the path is drawn. */
  readonly sequence: number;
  /** The newest step: a new one changes the path. */
  readonly last: number;
}

/** Draws the graph of a run: the path taken with its loops, failed attempts, and where the run is. */
export function RunGraph({ runId, sequence, last }: RunGraphProps) {
  const { data, error, reload } = useCall("run_graph", { run_id: runId, ...(sequence < last && { sequence }) }, (event) =>
    isChangeOf(runId, event),
  );
  const placed = useMemo(() => data && placeGraph(data), [data]);
  if (error) return <Failure error={error} retry={reload} />;
  if (!data || !placed) return <div class="graph" aria-busy="true" />;
  const { width, height, nodes, edges } = placed;
  const text = nodes.map(({ name, visits }) => `${nameOf(name)} ${formatPlural(visits, "time")}`).join(", ");
  return (
    <div class="graph">
      <svg viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="img" aria-label={`Graph: ${text}`}>
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">
            <path d="M0 0L8 4L0 8z" />
          </marker>
        </defs>
        {edges.map((edge) => (
          <Edge key={`${edge.from} ${edge.to}`} edge={edge} />
        ))}
        {nodes.map((node) => (
          <Node key={node.id} node={node} />
        ))}
      </svg>
      {!data.shape_stored && <p class="soft">The shape of this graph is not stored. Only the path taken is drawn.</p>}
      {data.truncated && <p class="soft">The run is long: only its newest steps are counted.</p>}
    </div>
  );
}

function Edge({ edge: { points, taken, label } }: { readonly edge: PlacedEdge }) {
  const middle = points[Math.floor((points.length - 1) / 2)]!;
  const text = [label, taken > 1 ? `${taken}×` : undefined].filter(Boolean).join(" ");
  return (
    <g class={taken > 0 ? "edge taken" : "edge"}>
      <path d={curve(points)} marker-end="url(#arrow)" />
      {text !== "" && (
        <text x={middle.x + 6} y={middle.y + 4}>
          {text}
        </text>
      )}
    </g>
  );
}

function Node({ node: { name, x, y, width, height, visits, failures, position } }: { readonly node: PlacedNode }) {
  const classes = ["node", visits > 0 && "visited", failures > 0 && "with-failures", position && `current ${position}`]
    .filter(Boolean)
    .join(" ");
  return (
    <g class={classes}>
      <rect x={x - width / 2} y={y - height / 2} width={width} height={height} rx="8" />
      <text x={x} y={y + 4.5} text-anchor="middle">
        {nameOf(name)}
        {visits > 1 ? ` ×${visits}` : ""}
      </text>
      {failures > 0 && (
        <text class="failures" x={x + width / 2 + 6} y={y + 4}>
          {failures} failed
        </text>
      )}
    </g>
  );
}

function nameOf(name: string): string {
  return name.replace(/^__(.*)__$/, "$1");
}

/** Rounds the corners of a line: from the middle of each segment to the next, bent towards the corner. */
function curve(points: PlacedEdge["points"]): string {
  const [first, ...rest] = points;
  const last = rest.at(-1)!;
  const bends = rest.slice(0, -1).map((corner, index) => {
    const next = rest[index + 1]!;
    const end = index === rest.length - 2 ? next : { x: (corner.x + next.x) / 2, y: (corner.y + next.y) / 2 };
    return `Q${corner.x} ${corner.y} ${end.x} ${end.y}`;
  });
  return `M${first!.x} ${first!.y}${bends.length > 0 ? bends.join("") : `L${last.x} ${last.y}`}`;
}
