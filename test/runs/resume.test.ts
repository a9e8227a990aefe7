import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it, vi } from "vitest";
import { CairnError, END, graph, memoryRunStore, openRunStore, type RunStore } from "../../src/runs.ts";
import { postgresWanted, type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { wrongInput } from "../support/wrong-input.ts";

interface Trail {
  readonly path: readonly string[];
  readonly said?: unknown;
}
const start: Trail = { path: [] };
const step = (name: string) => (state: Trail) => ({ ...state, path: [...state.path, name] });

const folder = mkdtempSync(join(tmpdir(), "cairn-resume-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const stores: Record<string, () => Promise<RunStore>> = {
  memory: () => openRunStore({ storage: "memory" }),
  files: () => openRunStore({ storage: "file", folder: join(folder, `${files++}`) }),
  SQLite: () => openRunStore({ storage: "sqlite", path: join(folder, `${files++}.db`) }),
};

const databases: TestDatabase[] = [];
if (postgresWanted)
  stores.PostgreSQL = async () => {
    const database = await testDatabase();
    databases.push(database);
    return openRunStore({ storage: "postgres", url: database.url, poolMax: 4 });
  };
afterAll(async () => {
  for (const database of databases) await database.drop();
});

for (const [name, open] of Object.entries(stores))
  describe(`a durable run on ${name}`, () => {
    it("writes the whole envelope of every step", async () => {
      const store = await open();
      const three = graph<Trail>({ name: "three" })
        .node("a", step("a"))
        .edge("a", "b")
        .node("b", step("b"))
        .edge("b", END)
        .entry("a")
        .compile();
      const result = await three.run(start, { store, runId: "r", project: "/p" });
      expect(result).toEqual({ status: "completed", runId: "r", state: { path: ["a", "b"] } });
      const history = await store.history("r", { limit: 10 });
      expect(
        history.map(({ nodeId, nextNode, previousNode, step, kind, attempt }) => [nodeId, nextNode, previousNode, step, kind, attempt]),
      ).toEqual([
        ["b", "__end__", "a", 2, "node", 1],
        ["a", "b", "__start__", 1, "node", 1],
        ["__start__", "a", null, 0, "start", 1],
      ]);
      expect(await store.getRun("r")).toMatchObject({
        graph: "three",
        status: "completed",
        project: "/p",
        leaseOwner: null,
        fingerprint: three.fingerprint,
      });
      expect(await three.resume("r", { store })).toEqual(result);
      await expect(three.run(start, { store, runId: "r" })).rejects.toMatchObject({ code: "conflict" });
      await store.close();
    });

    it("continues after a failure without repeating finished steps, and counts the tries", async () => {
      const store = await open();
      const calls: string[] = [];
      let broken = true;
      const keys: string[] = [];
      const flow = graph<Trail>()
        .node("a", (state) => {
          calls.push("a");
          return step("a")(state);
        })
        .edge("a", "b")
        .node(
          "b",
          (state, { idempotencyKey, attempt }) => {
            calls.push(`b${attempt}`);
            keys.push(idempotencyKey);
            (state.path as string[]).push("scribble"); // what a step does to its input is not kept
            if (broken) throw new Error("not yet");
            return { path: [...state.path.filter((name) => name !== "scribble"), "b"] };
          },
          { retry: { attempts: 2, backoffMs: 1 } },
        )
        .edge("b", END)
        .entry("a")
        .compile();
      await expect(flow.run(start, { store, runId: "r" })).rejects.toMatchObject({ kind: "node", node: "b" });
      expect(await store.getRun("r")).toMatchObject({ status: "failed", note: expect.stringContaining("not yet") });
      broken = false;
      expect(await flow.resume("r", { store })).toMatchObject({ status: "completed", state: { path: ["a", "b"] } });
      expect(calls).toEqual(["a", "b1", "b2", "b3"]);
      expect(keys).toEqual(["r/b#2/1", "r/b#2/2", "r/b#2/3"]);
      await store.close();
    });

    it("pauses for a person, stores the question, and continues with the answer", async () => {
      const store = await open();
      let asked = 0;
      const approval = graph<Trail>({ name: "approval" })
        .node("ask", (state, { interrupt }) => {
          asked++;
          const first = interrupt<string>({ text: "sure?" });
          const second = interrupt<string>("really?");
          return { ...step("ask")(state), said: [first, second] };
        })
        .edge("ask", END)
        .entry("ask")
        .compile();
      const paused = await approval.run(start, { store, runId: "r" });
      expect(paused).toEqual({
        status: "paused",
        runId: "r",
        state: start,
        interrupts: [{ node: "ask", branch: "", question: { text: "sure?" } }],
      });
      expect(await store.getRun("r")).toMatchObject({ status: "paused", leaseOwner: null });
      expect(await approval.resume("r", { store })).toMatchObject({ status: "paused" });
      expect(await approval.resume("r", { store, input: "yes" })).toMatchObject({
        status: "paused",
        interrupts: [{ question: "really?" }],
      });
      await expect(approval.resume("r", { store, inputs: { other: 1 } })).rejects.toMatchObject({ code: "invalid_input" });
      expect(await store.getRun("r")).toMatchObject({ status: "paused" });
      expect(await approval.resume("r", { store, input: "really" })).toMatchObject({
        status: "completed",
        state: { said: ["yes", "really"] },
      });
      expect(asked).toBe(4);
      await store.close();
    });

    it("checkpoints every branch, so that a resumed fork repeats none that was done", async () => {
      const store = await open();
      const calls: string[] = [];
      let broken = true;
      const did = (name: string) => (state: Trail) => {
        calls.push(name);
        if (name === "r2" && broken) throw new Error("no");
        return step(name)(state);
      };
      const inner = graph<Trail>({ name: "inner" })
        .node("i1", did("i1"))
        .edge("i1", "i2")
        .node("i2", did("i2"))
        .edge("i2", END)
        .entry("i1")
        .compile();
      const fan = graph<Trail>({ name: "fan" })
        .fork("fan", {
          branches: { left: "l1", right: "r1" },
          join: "join",
          onError: "fail-fast",
          merge: (before, { left, right }) => ({ path: [...before.path, ...left.path, ...right.path] }),
        })
        .node("l1", did("l1"))
        .edge("l1", "sub")
        .subgraph("sub", inner, { enter: () => start, leave: (state, { path }) => ({ path: [...state.path, ...path] }) })
        .edge("sub", "join")
        .node("r1", did("r1"))
        .edge("r1", "wait")
        .node("wait", async (state) => {
          // Until all of the other branch is stored.
          const isStored = async () =>
            (await store.history("r", { limit: 100 })).some(({ branch, nodeId }) => branch === "fan#1/left" && nodeId === "sub");
          await vi.waitFor(async () => expect(await isStored()).toBe(true), 120_000);
          return state;
        })
        .edge("wait", "r2")
        .node("r2", did("r2"))
        .edge("r2", "join")
        .node("join", did("join"))
        .edge("join", END)
        .entry("fan")
        .compile();
      await expect(fan.run(start, { store, runId: "r" })).rejects.toMatchObject({ kind: "fork" });
      const branches = new Set((await store.history("r", { limit: 100 })).map(({ branch }) => branch));
      expect([...branches].sort()).toEqual(["", "fan#1/left", "fan#1/left/sub#2", "fan#1/right"]);
      broken = false;
      const result = await fan.resume("r", { store });
      expect(result.state.path).toEqual(["l1", "i1", "i2", "r1", "r2", "join"]);
      expect(calls.sort()).toEqual(["i1", "i2", "join", "l1", "r1", "r2", "r2"]);
      await store.close();
    });

    it("pauses in a branch while the others end, and takes answers by node", async () => {
      const store = await open();
      const fan = graph<Trail>()
        .fork("fan", {
          branches: { x: "x", y: "y", z: "z" },
          join: END,
          merge: (_, { x, y, z }) => ({ path: [...x.path, ...y.path, ...z.path], said: [x.said, y.said] }),
        })
        .node("x", (state, { interrupt }) => ({ ...step("x")(state), said: interrupt("x?") }))
        .edge("x", END)
        .node("y", (state, { interrupt }) => ({ ...step("y")(state), said: interrupt("y?") }))
        .edge("y", END)
        .node("z", step("z"))
        .edge("z", END)
        .entry("fan")
        .compile();
      const paused = await fan.run(start, { store, runId: "r" });
      expect(paused).toMatchObject({ status: "paused", interrupts: [{ node: "x" }, { node: "y" }] });
      expect(await fan.resume("r", { store, inputs: { x: 1 } })).toMatchObject({ status: "paused", interrupts: [{ node: "y" }] });
      expect(await fan.resume("r", { store, input: 2 })).toMatchObject({ state: { path: ["x", "y", "z"], said: [1, 2] } });
      await store.close();
    });

    it("asks a router again that failed, without repeating its step", async () => {
      const store = await open();
      let calls = 0;
      let broken = true;
      const flow = graph<Trail>()
        .node("a", (state) => {
          calls++;
          return step("a")(state);
        })
        .branch("a", () => {
          if (broken) throw new Error("no");
          return END;
        }, [END])
        .entry("a")
        .compile();
      await expect(flow.run(start, { store, runId: "r" })).rejects.toMatchObject({ kind: "router" });
      broken = false;
      expect(await flow.resume("r", { store })).toMatchObject({ status: "completed", state: { path: ["a"] } });
      expect(calls).toBe(1);
      await store.close();
    });

    it("travels in time: on from a sequence or node, replays a node, forks a run, takes another state", async () => {
      const store = await open();
      const keys: string[] = [];
      const flow = graph<Trail>({
        name: "travel",
        parse: (state) => {
          if (!Array.isArray((state as Trail).path)) throw new Error("path must be a list");
          return state as Trail;
        },
      })
        .node("a", step("a"))
        .edge("a", "b")
        .node("b", (state, { idempotencyKey }) => {
          keys.push(idempotencyKey);
          return step("b")(state);
        })
        .edge("b", "c")
        .node("c", step("c"))
        .edge("c", END)
        .entry("a")
        .compile();
      await flow.run(start, { store, runId: "r" });
      const b = (await store.list("r")).find(({ nodeId }) => nodeId === "b")!;

      expect(await flow.resumeFrom("r", { store, sequence: b.sequence, fork: "r2" })).toMatchObject({
        runId: "r2",
        state: { path: ["a", "b", "c"] },
      });
      expect(await store.getRun("r2")).toMatchObject({ parent: { runId: "r", sequence: b.sequence }, status: "completed" });
      expect(await flow.resumeFrom("r", { store, node: "a", state: { path: ["other"] } })).toMatchObject({
        state: { path: ["other", "b", "c"] },
      });
      expect(await flow.resumeFrom("r", { store, node: "b", replay: true, fork: "r3" })).toMatchObject({
        state: { path: ["other", "b", "c"] },
      });
      expect(new Set(keys).size).toBe(keys.length);

      await expect(flow.resumeFrom("r", { store, node: "a", state: wrongInput({ path: "x" }) })).rejects.toMatchObject({ kind: "state" });
      await expect(flow.resumeFrom("r", { store, node: "ghost" })).rejects.toMatchObject({ code: "not_found" });
      await expect(flow.resumeFrom("r", { store })).rejects.toMatchObject({ code: "invalid_input" });
      await expect(flow.resumeFrom("r", { store, sequence: 999 })).rejects.toMatchObject({ code: "not_found" });
      // A run that could not be set back is left as it was.
      expect(await store.getRun("r")).toMatchObject({ status: "completed", leaseOwner: null });
      await store.close();
    });

    it("refuses a changed graph until the change is accepted", async () => {
      const store = await open();
      const build = (last: string, version: string) =>
        graph<Trail>({ name: "changing", version })
          .node("a", step("a"))
          .edge("a", "hold")
          .node("hold", (state, { interrupt }) => ({ ...state, said: interrupt() }))
          .edge("hold", last)
          .node(last, step(last))
          .edge(last, END)
          .entry("a")
          .compile();
      await build("b", "1").run(start, { store, runId: "r" });
      const changed = build("c", "1");
      await expect(changed.resume("r", { store, input: 1 })).rejects.toMatchObject({
        kind: "graph_changed",
        code: "conflict",
        node: "hold",
        state: { path: ["a"] },
      });
      expect(await changed.resume("r", { store, input: 1, acceptGraphChange: true })).toMatchObject({ state: { path: ["a", "c"] } });
      expect((await store.getRun("r"))?.fingerprint).toBe(changed.fingerprint);
      await store.close();
    });

    it("lets only one of two continue a run, and fences off one that comes back late", async () => {
      const store = await open();
      const calls: string[] = [];
      let release!: () => void;
      const gate = new Promise<void>((resolve) => {
        release = resolve;
      });
      const flow = graph<Trail>({ name: "held" })
        .node("a", async (state, { attempt }) => {
          calls.push(`a${attempt}`);
          if (calls.length === 1) await gate;
          return step("a")(state);
        })
        .edge("a", "b")
        .node("b", step("b"))
        .edge("b", END)
        .entry("a")
        .compile();
      // A store whose renewals never arrive stands for a process that was stopped.
      const stopped: RunStore = { ...store, renew: () => new Promise(() => {}) };
      const first = flow.run(start, { store: stopped, runId: "r", leaseMs: 2_000 });
      const lost = expect(first).rejects.toMatchObject({ kind: "lease", code: "conflict" });
      await vi.waitFor(() => expect(calls).toEqual(["a1"]), 120_000);
      await expect(flow.resume("r", { store })).rejects.toMatchObject({
        kind: "lease",
        code: "conflict",
        retryAfterMs: expect.any(Number),
      });
      await vi.waitFor(async () => expect(await store.listRuns({ abandoned: true, limit: 1 })).toHaveLength(1), 120_000);
      const recovered = await flow.recover({ store });
      expect(recovered).toMatchObject([{ runId: "r", result: { status: "completed", state: { path: ["a", "b"] } } }]);
      release();
      await lost;
      expect(calls).toEqual(["a1", "a1"]);
      expect((await store.history("r", { limit: 10 })).filter(({ kind }) => kind === "node").length).toBe(2);
      await store.close();
    });

    it("renews its lease while a step takes long", async () => {
      const store = await open();
      const slow = graph<Trail>()
        .node("slow", async (state, { runId }) => {
          const leaseUntil = async () => (await store.getRun(runId))!.leaseUntil!;
          for (let renewals = 0; renewals < 2; renewals++) {
            const before = await leaseUntil();
            await vi.waitFor(async () => expect((await leaseUntil()) > before).toBe(true), 120_000);
          }
          return step("slow")(state);
        })
        .edge("slow", END)
        .entry("slow")
        .compile();
      expect(await slow.run(start, { store, leaseMs: 2_000 })).toMatchObject({ status: "completed" });
      await store.close();
    });

    it("keeps a long loop's history bounded", async () => {
      const store = await open();
      const loop = graph<{ readonly n: number }>()
        .node("a", ({ n }) => ({ n: n + 1 }))
        .branch("a", ({ n }) => (n < 120 ? "a" : END), ["a", END])
        .entry("a")
        .compile();
      expect(await loop.run({ n: 0 }, { store, runId: "r", keepHistory: 10 })).toMatchObject({ state: { n: 120 } });
      expect((await store.history("r", { limit: 1_000 })).length).toBeLessThanOrEqual(31);
      expect((await store.getRun("r"))?.lastSequence).toBe(121);
      await store.close();
    });
  });

describe("a store that fails", () => {
  const flow = graph<Trail>().node("a", step("a")).edge("a", "b").node("b", step("b")).edge("b", END).entry("a").compile();

  it("ends the run by default, and only reports when asked to continue", async () => {
    const store = memoryRunStore();
    const full: RunStore = {
      ...store,
      save: () => Promise.reject(new CairnError("unavailable", "The disk is full.", { details: { damaged: true } })),
    };
    await expect(flow.run(start, { store: full, runId: "r" })).rejects.toMatchObject({
      kind: "checkpoint",
      code: "unavailable",
      node: "a",
    });
    const reported: string[] = [];
    const result = await flow.run(start, { store: full, onCheckpointError: "warn", onEvent: ({ type }) => reported.push(type) });
    expect(result).toMatchObject({ status: "completed", state: { path: ["a", "b"] } });
    expect(reported.filter((type) => type === "checkpoint_failed").length).toBe(2);
  });

  it("is waited for, and a save whose answer was lost is not made twice", async () => {
    const store = memoryRunStore();
    let calls = 0;
    const flaky: RunStore = {
      ...store,
      async save(checkpoint, options) {
        calls++;
        if (calls === 1) throw new CairnError("unavailable", "Gone before it was written.");
        const saved = await store.save(checkpoint, options);
        if (calls === 2) throw new CairnError("unavailable", "Gone after it was written.");
        return saved;
      },
      async start(run) {
        await store.start(run);
        throw new CairnError("unavailable", "Gone after it was written.");
      },
    };
    expect(await flow.run(start, { store: flaky, runId: "r" })).toMatchObject({ status: "completed" });
    expect((await store.history("r", { limit: 10 })).map(({ nodeId }) => nodeId)).toEqual(["b", "a", "__start__"]);
  });

  it("refuses states that are not plain data, and reports which part", async () => {
    const odd = graph<object>()
      .node("a", () => ({ deep: { fn: () => 1 } }))
      .edge("a", END)
      .entry("a")
      .compile();
    await expect(odd.run({}, { store: memoryRunStore() })).rejects.toMatchObject({
      kind: "state",
      message: expect.stringContaining('"fn"'),
    });
    await expect(odd.run({ x: new (class Odd {})() }, { store: memoryRunStore() })).rejects.toMatchObject({
      kind: "state",
      message: expect.stringContaining("Odd"),
    });
    expect(await odd.run({})).toMatchObject({ status: "completed" });
  });
});
