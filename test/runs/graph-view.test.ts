import { describe, expect, it } from "vitest";
import { viewGraph } from "../../src/runs/graph-view.ts";
import { shapeOf } from "../../src/runs/shape.ts";
import { END, graph, memoryRunStore, type RunStore } from "../../src/runs.ts";

interface Doc {
  readonly words: number;
  readonly by?: string;
}

const approval = graph<Doc>({ name: "approval" })
  .node("ask", (state, { interrupt }) => ({ ...state, by: interrupt<string>("Publish it?") }))
  .edge("ask", END)
  .entry("ask")
  .compile();

const review = graph<Doc>({ name: "review", version: "2" })
  .node("draft", ({ words }) => ({ words: words + 100 }), { retry: { attempts: 3 }, timeoutMs: 5_000 })
  .branch("draft", ({ words }) => (words < 300 ? "draft" : "check"), ["draft", "check", END])
  .fork("check", { branches: { facts: "facts", style: "style" }, join: "approve", merge: (before) => before })
  .node("facts", (state) => state)
  .edge("facts", "approve")
  .node("style", (state) => state)
  .edge("style", "approve")
  .subgraph("approve", approval, { enter: (state) => state, leave: (_, inner) => inner })
  .edge("approve", END)
  .entry("draft")
  .compile();

describe("the shape of a graph", () => {
  it("has nodes, edges of every kind and the shapes of sub-graphs", () => {
    const shape = shapeOf(review.definition);
    expect(shape).toMatchObject({ graph: "review", version: "2", entry: "draft", fingerprint: review.fingerprint });
    expect(shape.nodes).toEqual([
      { name: "draft", type: "step", attempts: 3, timeoutMs: 5_000 },
      { name: "check", type: "fork" },
      { name: "facts", type: "step" },
      { name: "style", type: "step" },
      { name: "approve", type: "graph", inner: shapeOf(approval.definition) },
    ]);
    expect(shape.edges).toEqual([
      { from: "__start__", to: "draft", kind: "edge" },
      { from: "draft", to: "draft", kind: "branch" },
      { from: "draft", to: "check", kind: "branch" },
      { from: "draft", to: "__end__", kind: "branch" },
      { from: "check", to: "facts", kind: "fork", label: "facts" },
      { from: "check", to: "style", kind: "fork", label: "style" },
      { from: "check", to: "approve", kind: "join" },
      { from: "facts", to: "approve", kind: "edge" },
      { from: "style", to: "approve", kind: "edge" },
      { from: "approve", to: "__end__", kind: "edge" },
    ]);
  });

  it("is stored with the first run of a process, once", async () => {
    const store = memoryRunStore();
    let saved = 0;
    const counting: RunStore = {
      ...store,
      saveGraph(shape) {
        saved++;
        return store.saveGraph(shape);
      },
    };
    for (const runId of ["a", "b"]) await review.run({ words: 0 }, { store: counting, runId });
    expect(saved).toBe(1);
    expect(await store.getGraph("review", review.fingerprint)).toEqual(shapeOf(review.definition));
  });
});

describe("a run in its graph", () => {
  it("counts loops, edges taken and the branches of forks and sub-graphs", async () => {
    const store = memoryRunStore();
    const steps = async () => [...(await store.history("r"))].reverse();
    await review.run({ words: 0 }, { store, runId: "r" });
    const paused = viewGraph(shapeOf(review.definition), await steps(), "paused");
    const node = (view: typeof paused, id: string) => view.nodes.find((one) => one.id === id);
    const taken = (view: typeof paused, from: string, to: string) => view.edges.find((one) => one.from === from && one.to === to)?.taken;
    expect(node(paused, "draft")).toMatchObject({ visits: 3, failures: 0, attempts: 3 });
    expect(taken(paused, "__start__", "draft")).toBe(1);
    expect(taken(paused, "draft", "draft")).toBe(2);
    expect(taken(paused, "draft", "check")).toBe(1);
    expect(taken(paused, "draft", "__end__")).toBe(0);
    expect(taken(paused, "check", "facts")).toBe(1);
    expect(taken(paused, "facts", "approve")).toBe(1);
    expect(node(paused, "approve/ask")).toMatchObject({ parent: "approve", visits: 0, position: "waits" });
    expect(taken(paused, "approve/__start__", "approve/ask")).toBe(1);

    await review.resume("r", { store, input: "Ada" });
    const done = viewGraph(shapeOf(review.definition), await steps(), "completed");
    expect(done.nodes.filter(({ position }) => position)).toEqual([]);
    expect(node(done, "approve/ask")).toMatchObject({ visits: 1 });
    expect(node(done, "__end__")).toMatchObject({ visits: 1 });
    expect(taken(done, "approve", "__end__")).toBe(1);
    expect(taken(done, "check", "approve")).toBe(1);
  });
});
