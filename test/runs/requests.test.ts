import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { open } from "../../src/open/open.ts";
import type { Cairn } from "../../src/operations/cairn.ts";
import { type Caller, invoke, LOCAL_CALLER } from "../../src/operations/invoke.ts";
import { operations } from "../../src/operations/list.ts";
import { END, graph, type RunStore } from "../../src/runs.ts";
import { newOwner } from "../../src/scheduling/owner.ts";

interface Order {
  readonly items: number;
  readonly price?: number;
  readonly by?: string;
}

const order = graph<Order>({ name: "order" })
  .node("price", ({ items }) => ({ items, price: items * 7 }))
  .edge("price", "ask")
  .node("ask", (state, { interrupt }) => {
    if (state.items < 0) throw new Error("no such order");
    return { ...state, price: interrupt<number>("Which price?") };
  })
  .edge("ask", END)
  .entry("price")
  .compile();

const both = graph<Order>({ name: "both" })
  .fork("fan", { branches: { a: "a", b: "b" }, join: "end", merge: (_, { a, b }) => ({ items: 0, by: `${a.by} ${b.by}` }) })
  .node("a", (state, { interrupt }) => ({ ...state, by: interrupt<string>("a?") }))
  .edge("a", "end")
  .node("b", (state, { interrupt }) => ({ ...state, by: interrupt<string>("b?") }))
  .edge("b", "end")
  .node("end", (state) => state)
  .edge("end", END)
  .entry("fan")
  .compile();

const folder = mkdtempSync(join(tmpdir(), "cairn-run-requests-"));
let cairn: Cairn;
let store: RunStore;
beforeAll(async () => {
  cairn = await open({ dataDir: folder, embedder: [] });
  store = cairn.runs.store;
});
afterAll(async () => {
  await cairn.close();
  rmSync(folder, { recursive: true, force: true });
});

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers, and fail where a part is missing
const call = (name: string, input: object, caller: Caller = LOCAL_CALLER): Promise<any> =>
  invoke(cairn, operations.find((operation) => operation.name === name)!, input, { caller, edge: "cli" });
const onlyMine: Caller = { access: "admin", projects: ["/mine"] };
const pause = (runId: string, project?: string) => order.run({ items: 10 }, { store, runId, ...(project && { project }) });
const announce = (command: string, fingerprint = order.fingerprint) =>
  store.announce({ workerId: command, owner: newOwner(), graphs: [{ graph: "order", fingerprint }], command, folder: "/shop" }, 60_000);

describe("answering a paused run", () => {
  it("stores the answer with the run, and the process with the graph continues it", async () => {
    await pause("o1");
    const { questions, workers } = await call("run_get", { run_id: "o1" });
    expect(questions).toMatchObject([{ sequence: 3, node: "ask", branch: "", question_json: '"Which price?"' }]);
    expect(workers).toEqual({
      listening: 0,
      hint: 'No worker listens for the graph "order". Run: cairn run work <module that exports the graph>',
    });
    const answered = await call("run_answer", { run_id: "o1", answer_json: "65" });
    expect(answered).toMatchObject({ run: { status: "answered", last_sequence: 4 }, changed: true, listening: 0 });
    expect(await order.resume("o1", { store })).toMatchObject({ status: "completed", state: { price: 65 } });
  });

  it("is idempotent for the same answer and refuses another one, before and after the run continued", async () => {
    await pause("o2");
    const answer = (json: string, sequence?: number) =>
      call("run_answer", { run_id: "o2", answer_json: json, ...(sequence && { sequence }) });
    expect(await answer('{"a":1}')).toMatchObject({ changed: true });
    expect(await answer('{"a":1}')).toMatchObject({ changed: false, run: { status: "answered" } });
    await expect(answer("2")).rejects.toMatchObject({ code: "conflict", details: { kind: "answered" } });
    await order.resume("o2", { store });
    expect(await answer('{"a":1}', 3)).toMatchObject({ changed: false, run: { status: "completed" } });
    await expect(answer("2", 3)).rejects.toMatchObject({ code: "conflict", details: { kind: "answered" } });
    await expect(answer("2", 1)).rejects.toMatchObject({ code: "invalid_input" });
  });

  it("gives the question to one of several answers that arrive together", async () => {
    await pause("o3");
    const answers = await Promise.allSettled([1, 2, 3, 4].map((n) => call("run_answer", { run_id: "o3", answer_json: `${n}` })));
    expect(answers.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const answer of answers)
      if (answer.status === "rejected") expect(answer.reason).toMatchObject({ code: "conflict", details: { kind: "answered" } });
  });

  it("asks which question is meant if several branches wait, and takes one answer after the other", async () => {
    await both.run({ items: 1 }, { store, runId: "b1" });
    await expect(call("run_answer", { run_id: "b1", answer: "x" })).rejects.toMatchObject({
      code: "invalid_input",
      message: expect.stringContaining('"a" of fan#1/a'),
    });
    await call("run_answer", { run_id: "b1", node: "a", answer: "Ada" });
    expect((await call("run_get", { run_id: "b1" })).questions).toMatchObject([{ node: "b" }]);
    await call("run_answer", { run_id: "b1", node: "b", answer: "Bob" });
    expect(await both.resume("b1", { store })).toMatchObject({ status: "completed", state: { by: "Ada Bob" } });
  });

  it("refuses a run that waits for nothing, that a process executes, or that the caller may not see", async () => {
    const lease = await store.start({
      ...{ runId: "held", graph: "order", fingerprint: order.fingerprint, owner: "me", leaseMs: 60_000 },
      first: { nodeId: "__start__", nextNode: "price", kind: "start", state: "{}" },
    });
    await expect(call("run_answer", { run_id: "held", answer: "x" })).rejects.toMatchObject({ details: { kind: "no_question" } });
    await store.release(lease, { status: "failed" });
    await pause("theirs", "/theirs");
    await expect(call("run_answer", { run_id: "theirs", answer: "x" }, onlyMine)).rejects.toMatchObject({ code: "not_found" });
    await expect(call("run_answer", { run_id: "theirs" })).rejects.toMatchObject({ code: "invalid_input" });
    await expect(call("run_answer", { run_id: "theirs", answer_json: "{" })).rejects.toMatchObject({ code: "invalid_input" });
    await expect(call("run_answer", { run_id: "none", answer: "x" })).rejects.toMatchObject({ code: "not_found" });
  });
});

describe("resuming and forking from another process", () => {
  it("queues a failed run once, and refuses completed and paused ones", async () => {
    await order.run({ items: -1 }, { store, runId: "f1" }).catch(() => {});
    expect(await call("run_resume", { run_id: "f1" })).toMatchObject({ changed: true, run: { status: "queued" } });
    expect(await call("run_resume", { run_id: "f1" })).toMatchObject({ changed: false, run: { status: "queued" } });
    await pause("f2");
    await expect(call("run_resume", { run_id: "f2" })).rejects.toMatchObject({ message: expect.stringContaining("waits for an answer") });
    await order.resume("f2", { store, input: 1 });
    await expect(call("run_resume", { run_id: "f2" })).rejects.toMatchObject({ message: expect.stringContaining("is completed") });
  });

  it("forks from a checkpoint into a queued run, once per id", async () => {
    await pause("base", "/mine");
    const forked = await call("run_fork", { run_id: "base", sequence: 2, new_run_id: "copy", state_json: '{"items":3}' }, onlyMine);
    expect(forked).toMatchObject({ changed: true, run: { run_id: "copy", status: "queued", parent: { run_id: "base", sequence: 2 } } });
    const again = { run_id: "base", sequence: 2, new_run_id: "copy" };
    expect(await call("run_fork", { ...again, state_json: '{"items":3}' })).toMatchObject({ changed: false });
    await expect(call("run_fork", again)).rejects.toMatchObject({ code: "conflict" });
    expect(await order.resume("copy", { store, input: undefined })).toMatchObject({ status: "paused", state: { items: 3 } });
    expect((await call("run_fork", { run_id: "base", sequence: 2, replay: true })).run.parent).toEqual({ run_id: "base", sequence: 1 });
  });
});

describe("queueing a run", () => {
  it("needs a known graph, and repeats no run of the same id", async () => {
    await expect(call("run_enqueue", { graph: "unknown", input_json: "{}" })).rejects.toMatchObject({ code: "not_found" });
    const input = { graph: "order", input_json: '{"items":2}', run_id: "q1", project: "/mine" };
    expect(await call("run_enqueue", input, onlyMine)).toMatchObject({ changed: true, run: { status: "queued", project: "/mine" } });
    expect(await call("run_enqueue", input)).toMatchObject({ changed: false });
    await expect(call("run_enqueue", { ...input, input_json: "{}" })).rejects.toMatchObject({ code: "conflict" });
    await expect(call("run_enqueue", { ...input, project: "/theirs" }, onlyMine)).rejects.toMatchObject({ code: "forbidden" });
    expect(await order.resume("q1", { store })).toMatchObject({ status: "paused", state: { price: 14 } });
    expect(await order.enqueue({ items: 4 }, { store, runId: "q2" })).toMatchObject({ status: "queued", lastSequence: 1 });
  });

  it("takes values from programs", async () => {
    expect(await cairn.runs.enqueue({ graph: "order", input: { items: 5 }, runId: "q3" })).toMatchObject({ changed: true });
    await order.resume("q3", { store });
    expect(await cairn.runs.answer({ runId: "q3", answer: 12 })).toMatchObject({ changed: true, run: { status: "answered" } });
    expect(await order.resume("q3", { store })).toMatchObject({ state: { price: 12 } });
    await expect(cairn.runs.answer({ runId: "q3", reply: 12 } as never)).rejects.toMatchObject({ code: "invalid_input" });
  });
});

describe("the registry of workers", () => {
  it("says whether a worker listens, which version it has, and how to start one", async () => {
    await pause("w1");
    await announce("cairn run work old.mjs", "another");
    expect((await call("run_get", { run_id: "w1" })).workers.hint).toContain("have another version");
    await announce("cairn run work shop.mjs");
    expect((await call("run_get", { run_id: "w1" })).workers).toEqual({ listening: 1 });
    for (const id of ["cairn run work old.mjs", "cairn run work shop.mjs"]) await store.withdraw(id);
    expect((await call("run_get", { run_id: "w1" })).workers.hint).toBe(
      'No worker listens for the graph "order". Run: cd /shop && cairn run work shop.mjs',
    );
    await pause("w2", "/mine");
    expect((await call("run_get", { run_id: "w2" }, onlyMine)).workers.hint).not.toContain("shop.mjs");
    const { workers } = await call("run_workers", { graph: "order" });
    expect(workers.map(({ command, listening }: Record<string, unknown>) => [command, listening]).sort()).toEqual([
      ["cairn run work old.mjs", false],
      ["cairn run work shop.mjs", false],
    ]);
    expect((await call("run_workers", {}, onlyMine)).workers[0]).not.toHaveProperty("command");
  });
});

describe("looking into a run", () => {
  it("returns the graph with the path taken", async () => {
    await pause("g1");
    const shown = await call("run_graph", { run_id: "g1", include_mermaid: true });
    expect(shown.nodes.map(({ id, visits, position }: Record<string, unknown>) => [id, visits, position])).toEqual([
      ["__start__", 1, undefined],
      ["price", 1, undefined],
      ["ask", 0, "waits"],
      ["__end__", 0, undefined],
    ]);
    expect(shown).toMatchObject({ shape_stored: true, version: "1", mermaid: order.toMermaid() });
    expect((await call("run_graph", { run_id: "g1", sequence: 1 })).nodes[1]).toMatchObject({ id: "price", visits: 0, position: "next" });
    await expect(call("run_graph", { run_id: "theirs" }, onlyMine)).rejects.toMatchObject({ code: "not_found" });
  });

  it("lists failed attempts", async () => {
    await order.run({ items: -1 }, { store, runId: "g2" }).catch(() => {});
    expect((await call("run_graph", { run_id: "g2" })).failures).toMatchObject([{ node: "ask", attempt: 1, message: "no such order" }]);
  });

  it("draws the steps of a run whose shape is not stored", async () => {
    await store.save({ runId: "plain", nodeId: "a", nextNode: "b", state: "1" });
    expect(await call("run_graph", { run_id: "plain" })).toMatchObject({ shape_stored: false, nodes: { length: 4 } });
  });

  it("returns the state at a checkpoint with its difference from the step before", async () => {
    await pause("s1");
    expect(await call("run_state", { run_id: "s1", sequence: 2 })).toMatchObject({
      checkpoint: { node_id: "price", sequence: 2 },
      previous: 1,
      changes: [{ path: "/price", kind: "added", after_json: "70" }],
      more_changes: false,
      state_json: '{"items":10,"price":70}',
    });
    expect(await call("run_state", { run_id: "s1", sequence: 1 })).not.toHaveProperty("previous");
    expect(await call("run_state", { run_id: "s1", changes_only: true })).not.toHaveProperty("state_json");
    await expect(call("run_state", { run_id: "s1", sequence: 99 })).rejects.toMatchObject({ code: "not_found" });
  });

  it("keeps the state and its changes within the token budget", async () => {
    await store.save({ runId: "large", nodeId: "a", state: JSON.stringify({ list: [] }) });
    await store.save({
      runId: "large",
      nodeId: "b",
      state: JSON.stringify({ list: Array.from({ length: 2_000 }, (_, i) => `item ${i}`) }),
    });
    const shown = await call("run_state", { run_id: "large", max_tokens: 500 });
    expect(shown).toMatchObject({ more_changes: true, note: expect.stringContaining("max_tokens") });
    expect(shown).not.toHaveProperty("state_json");
    expect(JSON.stringify(shown).length).toBeLessThan(4_000);
  });
});
