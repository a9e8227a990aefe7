import assert from "node:assert/strict";
import type { GraphShape } from "../model/graph-shape.ts";
import { LEASE_MS, type RunCases } from "./run-samples.ts";

function shape(graph: string, fingerprint: string): GraphShape {
  return {
    graph,
    fingerprint,
    version: "1",
    entry: "a",
    nodes: [{ name: "a", type: "step", attempts: 3 }],
    edges: [
      { from: "__start__", to: "a", kind: "edge" },
      { from: "a", to: "__end__", kind: "branch" },
    ],
  };
}

/** The shapes of graphs, and the workers that listen for them. */
export const RUN_WORKER_CASES: RunCases = {
  "stores the shape of a graph once per fingerprint": async (store, pass) => {
    await store.saveGraph(shape("demo", "f1"));
    await pass(3);
    await Promise.all([1, 2, 3].map(() => store.saveGraph(shape("demo", "f2"))));
    await pass(3);
    await store.saveGraph({ ...shape("demo", "f1"), version: "ignored" });
    await store.saveGraph(shape("other", "f1"));
    assert.deepEqual(await store.getGraph("demo", "f1"), shape("demo", "f1"));
    assert.equal(await store.getGraph("demo", "f3"), undefined);
    const listed = async (query: { graph?: string; limit: number }) =>
      (await store.listGraphs(query)).map(({ graph, fingerprint }) => `${graph} ${fingerprint}`);
    assert.deepEqual(await listed({ graph: "demo", limit: 10 }), ["demo f2", "demo f1"]);
    assert.deepEqual(await listed({ limit: 2 }), ["other f1", "demo f2"]);
  },

  "lists workers while they listen, and shows the command of ended ones": async (store, pass) => {
    const graphs = [
      { graph: "demo", fingerprint: "f1" },
      { graph: "other", fingerprint: "f9" },
    ];
    const worker = { workerId: "w1", owner: "me", graphs, command: "cairn run work a.mjs", folder: "/a" };
    await store.announce(worker, LEASE_MS);
    await store.announce(worker, LEASE_MS); // again, before it expires
    const [found, ...more] = await store.listWorkers({ graph: "demo", limit: 10 });
    assert.deepEqual(more, []);
    const { startedAt, until, ...known } = found!;
    assert.ok(until > startedAt);
    assert.deepEqual(known, {
      workerId: "w1",
      graph: "demo",
      fingerprint: "f1",
      owner: "me",
      command: "cairn run work a.mjs",
      folder: "/a",
      listening: true,
    });
    assert.equal((await store.listWorkers({ limit: 10 })).length, 2);
    await pass(LEASE_MS);
    await store.announce({ ...worker, workerId: "w2", command: null, folder: null }, LEASE_MS);
    assert.deepEqual(
      (await store.listWorkers({ graph: "demo", limit: 10 })).map(({ workerId, listening }) => [workerId, listening]),
      [
        ["w2", true],
        ["w1", false],
      ],
    );
    await store.withdraw("w2");
    assert.deepEqual(
      (await store.listWorkers({ graph: "demo", limit: 1 })).map(({ workerId, listening }) => [workerId, listening]),
      [["w2", false]],
    );
    // The same command again replaces its expired entry.
    await store.announce({ ...worker, workerId: "w3" }, LEASE_MS);
    assert.deepEqual(
      (await store.listWorkers({ graph: "demo", limit: 10 })).map(({ workerId }) => workerId),
      ["w3", "w2"],
    );
  },
};
