import { expect, it } from "vitest";
import { CheckpointNotFoundError, type CheckpointStore, END, graph, type MemoryStore } from "../../src/runs.ts";

/** Defines the tests that every store class with the original names passes. `open` returns a store; two stores may share their data. */
export function checkpointStoreSuite(open: () => CheckpointStore & Pick<MemoryStore, "runs">): void {
  it("passes the table of tests of the original design", async () => {
    const store = open();
    await store.save("run-1", "node-a", "data-a");
    expect(await store.load("run-1", "node-a")).toBe("data-a");
    await store.save("run-1", "node-a", "data-a2");
    expect(await store.load("run-1", "node-a")).toBe("data-a2");
    await expect(store.load("run-1", "node-x")).rejects.toBeInstanceOf(CheckpointNotFoundError);
    await store.save("run-1", "node-b", new Uint8Array([1, 2]));
    expect((await store.list("run-1")).map(({ nodeId }) => nodeId)).toEqual(["node-a", "node-b"]);
    await store.delete("run-1", "node-a");
    await store.delete("run-1", "node-a");
    await expect(store.load("run-1", "node-a")).rejects.toMatchObject({ code: "not_found" });
    await store.deleteRun("run-1");
    await store.deleteRun("run-1");
    expect(await store.list("run-1")).toEqual([]);
    await store.close();
  });

  it("serves a graph through its run store", async () => {
    const store = open();
    const flow = graph<{ n: number }>()
      .node("add", ({ n }) => ({ n: n + 1 }))
      .entry("add")
      .edge("add", END)
      .compile();
    expect(await flow.run({ n: 1 }, { store: await store.runs(), runId: "graph-1" })).toMatchObject({ state: { n: 2 } });
    await store.close();
  });
}
