import { z } from "zod";
import { operation } from "../operations/operation.ts";
import { MaxTokens } from "../operations/schemas.ts";
import { estimateTokens, recordTokens, withinBudget } from "../text/estimate-tokens.ts";
import type { StateChange } from "./compare-states.ts";
import { oneLine } from "./drawing.ts";
import { shapeMermaid } from "./mermaid.ts";
import { readableJson } from "./state-json.ts";
import { maySee, present, RunId, RunOutput, StepOutput } from "./wire-schemas.ts";

const NodeOutput = z.object({
  id: z.string(),
  name: z.string(),
  type: z.enum(["start", "end", "step", "fork", "graph"]),
  parent: z.string().optional().describe("The sub-graph that the node is in."),
  visits: z.int().describe("How often the node finished; 2 or more is a loop."),
  failures: z.int(),
  position: z.enum(["next", "running", "waits", "failed"]).optional().describe("What the run does at the node now."),
  attempts: z.int().optional(),
  timeout_ms: z.number().optional(),
});

const EdgeOutput = z.object({
  from: z.string(),
  to: z.string(),
  kind: z.enum(["edge", "branch", "fork", "join"]).describe("branch: one of the targets of a router; fork: a concurrent branch."),
  label: z.string().optional(),
  taken: z.int(),
});

export const runGraph = operation({
  name: "run_graph",
  summary: "Show a run's graph: nodes, edges, the path taken with loop counts, and failed attempts.",
  input: z.strictObject({
    run_id: RunId,
    sequence: z.int().min(1).optional().describe("The path up to this checkpoint."),
    include_mermaid: z.boolean().default(false).describe("Include the graph as Mermaid text."),
  }),
  output: z.object({
    run: RunOutput,
    version: z.string().optional(),
    shape_stored: z.boolean().describe("False: only the steps that were taken are known."),
    nodes: z.array(NodeOutput),
    edges: z.array(EdgeOutput),
    failures: z.array(
      z.object({
        sequence: z.int(),
        node: z.string(),
        branch: z.string(),
        attempt: z.int(),
        message: z.string(),
        timestamp: z.iso.datetime(),
      }),
    ),
    truncated: z.boolean().describe("Whether older checkpoints were not counted."),
    mermaid: z.string().optional(),
  }),
  access: "read",
  toolset: "runs",
  cli: {
    positional: ["run_id"],
    examples: ["cairn run graph nightly-42", "cairn run graph nightly-42 --include-mermaid"],
  },
  render: ({ run, nodes, edges, failures, truncated, mermaid }) =>
    mermaid ??
    [
      `${run.run_id}: ${run.status}, graph ${run.graph || "(none)"}`,
      ...nodes.filter(({ type }) => type !== "end").map((node) => nodeLine(node, edges)),
      ...failures.map(({ node, attempt, message, sequence }) => `✗ ${node} (try ${attempt}, sequence ${sequence}): ${oneLine(message)}`),
      truncated ? "Older checkpoints are not counted." : "",
    ]
      .filter(Boolean)
      .join("\n"),
  async run(cairn, { includeMermaid, ...input }, context) {
    const { shape, ...found } = await cairn.runs.graph(input, maySee(context));
    return present({ ...found, ...(includeMermaid && shape && { mermaid: shapeMermaid(shape) }) });
  },
});

type DrawnNode = z.output<typeof NodeOutput>;

const MARK = { next: "▸", running: "▸", waits: "‖", failed: "✗" } as const;

/** Draws a node with its edges: `● draft ×3 → draft ×2, check`. */
function nodeLine({ id, name, parent, visits, position }: DrawnNode, edges: readonly z.output<typeof EdgeOutput>[]): string {
  const depth = parent === undefined ? 0 : parent.split("/").length;
  const targets = edges
    .filter(({ from, kind }) => from === id && kind !== "join")
    .map(({ to, taken }) => `${shortName(to)}${taken > 1 ? ` ×${taken}` : taken === 0 ? " (not taken)" : ""}`);
  const mark = position ? MARK[position] : visits > 0 ? "●" : "○";
  return `${"  ".repeat(depth)}${mark} ${shortName(name)}${visits > 1 ? ` ×${visits}` : ""}${targets.length > 0 ? ` → ${targets.join(", ")}` : ""}`;
}

function shortName(id: string): string {
  const name = id.slice(id.lastIndexOf("/") + 1);
  return name === "__start__" ? "start" : name === "__end__" ? "end" : name;
}

const ChangeOutput = z.object({
  path: z.string().describe("JSON pointer to the changed value."),
  kind: z.enum(["added", "removed", "changed"]),
  before_json: z.string().optional(),
  after_json: z.string().optional(),
});

export const runState = operation({
  name: "run_state",
  summary: "Show the state of a run at a checkpoint, and its difference from the step before.",
  input: z.strictObject({
    run_id: RunId,
    sequence: z.int().min(1).optional().describe("The checkpoint; default the newest of the main line."),
    changes_only: z.boolean().default(false).describe("Leave out the whole state."),
    max_tokens: MaxTokens,
  }),
  output: z.object({
    checkpoint: StepOutput,
    previous: z.int().optional().describe("The checkpoint before it on the same line."),
    changes: z.array(ChangeOutput),
    more_changes: z.boolean(),
    state_json: z.string().optional(),
    note: z.string().optional(),
  }),
  access: "read",
  toolset: "runs",
  cli: { positional: ["run_id", "sequence"], examples: ["cairn run state nightly-42", "cairn run state nightly-42 7 --changes-only"] },
  render: ({ checkpoint: { node_id, sequence, kind }, previous, changes, more_changes, state_json, note }) =>
    [
      `checkpoint ${sequence}: ${kind} ${shortName(node_id)}${previous === undefined ? "" : `, compared with ${previous}`}`,
      ...changes.map(changeLine),
      more_changes ? "There are more changes." : "",
      previous !== undefined && changes.length === 0 && !more_changes ? "No changes." : "",
      state_json ? `state: ${state_json}` : "",
      note ?? "",
    ]
      .filter(Boolean)
      .join("\n"),
  async run(cairn, { maxTokens, changesOnly, ...input }, context) {
    const { checkpoint, previous, state, changes, moreChanges } = await cairn.runs.state(input, maySee(context));
    const stateJson = state && !changesOnly ? readableJson(state.value) : undefined;
    const stateTokens = stateJson === undefined ? 0 : estimateTokens(JSON.stringify(stateJson));
    const budget = maxTokens - recordTokens(checkpoint);
    // The differences come first, because they are shorter; the state is all or nothing.
    const fitting = withinBudget(changes.map(presentChange), budget, recordTokens);
    const left = budget - fitting.reduce((sum, change) => sum + recordTokens(change), 0);
    const note =
      state === undefined
        ? "The state is too large to be shown."
        : stateTokens > left
          ? `The state has about ${stateTokens} tokens. Use a larger max_tokens to read it.`
          : undefined;
    return present({
      checkpoint,
      previous,
      changes: fitting,
      moreChanges: moreChanges || fitting.length < changes.length,
      stateJson: note === undefined ? stateJson : undefined,
      note,
    });
  },
});

/** Characters of a changed value. Half of a JSON text is none, so that a longer value is left out. */
const VALUE_SHOWN = 4_000;

function presentChange({ path, kind, ...values }: StateChange) {
  const pointer = path.map((part) => `/${String(part).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
  const json = (key: "before" | "after") => {
    const text = key in values ? (readableJson(values[key]) ?? "null") : undefined;
    return text !== undefined && text.length <= VALUE_SHOWN ? text : undefined;
  };
  return { path: pointer, kind, beforeJson: json("before"), afterJson: json("after") };
}

function changeLine({ path, kind, before_json, after_json }: z.output<typeof ChangeOutput>): string {
  const value = (json: string | undefined) => (json === undefined ? "(long)" : oneLine(json));
  const at = path === "" ? "/" : path;
  if (kind === "added") return `+ ${at}: ${value(after_json)}`;
  if (kind === "removed") return `- ${at}: ${value(before_json)}`;
  return `~ ${at}: ${value(before_json)} → ${value(after_json)}`;
}

export const inspectionOperations = [runGraph, runState];
