import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import {
  END,
  graph,
  memoryRunStore,
  openRunStore,
  type RunStore,
  type Worker,
  type WorkerEvent,
  type WorkerOptions,
  worker,
} from "../../src/runs.ts";
import { inboxes, system } from "../../src/systems.ts";
import { newRun } from "../../src/testing/run-samples.ts";
import { endedOwner } from "./ended-owner.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-worker-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const running: Worker[] = [];
const events: WorkerEvent[] = [];
const start = (options: WorkerOptions) => {
  const started = worker({ pollMs: 20, onEvent: (event) => events.push(event), ...options });
  running.push(started);
  return started;
};
afterEach(async () => {
  for (const started of running.splice(0)) await started.close();
  events.splice(0);
});

interface Job {
  readonly n: number;
  readonly by?: string;
}

/** A graph whose step waits until the test lets it continue. */
function held(name = "held") {
  let [entered, most] = [0, 0];
  const gates: (() => void)[] = [];
  const graph_ = graph<Job>({ name })
    .node("wait", async (state) => {
      most = Math.max(most, ++entered);
      await new Promise<void>((resolve) => gates.push(resolve));
      entered--;
      return { ...state, n: state.n + 1 };
    })
    .edge("wait", "after")
    .node("after", (state) => state)
    .edge("after", END)
    .entry("wait")
    .compile();
  return { graph: graph_, gates, most: () => most };
}

const ask = graph<Job>({ name: "ask" })
  .node("ask", (state, { interrupt }) => ({ ...state, by: interrupt<string>("Who?") }))
  .edge("ask", END)
  .entry("ask")
  .compile();

const until = async (condition: () => boolean | Promise<boolean>) => {
  while (!(await condition())) await sleep(10);
};
const statusOf = async (store: RunStore, runId: string) => (await store.getRun(runId))?.status;

describe.each<[string, () => Promise<RunStore>]>([
  ["memory", async () => memoryRunStore()],
  ["files", () => openRunStore({ storage: "file", folder: join(folder, crypto.randomUUID()) })],
  ["SQLite", () => openRunStore({ storage: "sqlite", path: join(folder, `${crypto.randomUUID()}.db`) })],
])("a worker on %s", (_, open) => {
  it("executes queued runs, pauses them, and continues answered ones", async () => {
    const store = await open();
    await ask.enqueue({ n: 1 }, { store, runId: "r" });
    const working = start({ store, graphs: [ask] });
    await working.idle();
    expect(await statusOf(store, "r")).toBe("paused");
    const { answerQuestion } = await import("../../src/runs/questions.ts");
    await answerQuestion(store, "r", { answer: "Ada" });
    await working.idle();
    expect(await ask.resume("r", { store })).toMatchObject({ status: "completed", state: { n: 1, by: "Ada" } });
    expect(events.map(({ type }) => type)).toEqual(["claimed", "ended", "claimed", "ended"]);
    expect((await store.listWorkers({ graph: "ask", limit: 10 })).map(({ listening }) => listening)).toEqual([true]);
    await working.close();
    expect((await store.listWorkers({ graph: "ask", limit: 10 })).map(({ listening }) => listening)).toEqual([false]);
    await store.close();
  });

  it("takes over the run of a process that has ended, before its lease expires", async () => {
    const store = await open();
    const first = { nodeId: "__start__", nextNode: "ask", kind: "start", step: 0, state: '{"n":1}' } as const;
    await store.start({ ...newRun("r"), graph: "ask", fingerprint: ask.fingerprint, owner: endedOwner(), leaseMs: 3_600_000, first });
    await start({ store, graphs: [ask] }).idle();
    expect(await statusOf(store, "r")).toBe("paused");
    expect(events[0]).toMatchObject({ type: "claimed", status: "running" });
    await store.close();
  });

  it("lets the current step finish when it stops, and gives the run back", async () => {
    const store = await open();
    const { graph: slow, gates } = held();
    await slow.enqueue({ n: 1 }, { store, runId: "r" });
    const working = start({ store, graphs: [slow] });
    await until(() => gates.length === 1);
    const closed = working.close();
    gates[0]!();
    await closed;
    expect(await store.getRun("r")).toMatchObject({ status: "queued", leaseOwner: null, claims: 0, lastSequence: 2 });
    await start({ store, graphs: [slow] }).idle();
    expect(await store.getRun("r")).toMatchObject({ status: "completed", lastSequence: 3 });
    expect(gates).toHaveLength(1);
    await store.close();
  });
});

describe("a worker", () => {
  it("aborts a step that does not end within the grace period; the next worker repeats it with the same key", async () => {
    const store = memoryRunStore();
    const keys: string[] = [];
    const stuck = graph<Job>({ name: "stuck" })
      .node("stuck", async (state, { idempotencyKey, signal }) => {
        keys.push(idempotencyKey);
        if (keys.length === 1) await once(signal, "abort");
        return state;
      })
      .edge("stuck", END)
      .entry("stuck")
      .compile();
    await stuck.enqueue({ n: 1 }, { store, runId: "r" });
    const working = start({ store, graphs: [stuck], graceMs: 50 });
    await until(() => keys.length === 1);
    await working.close();
    expect(await statusOf(store, "r")).toBe("queued");
    await start({ store, graphs: [stuck] }).idle();
    expect(await statusOf(store, "r")).toBe("completed");
    expect(new Set(keys).size).toBe(1);
  });

  it("hands over the branches of a fork after their steps", async () => {
    const store = memoryRunStore();
    const done: string[] = [];
    let release = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const step = (name: string) => async (state: Job) => {
      if (name.endsWith("1")) await gate;
      done.push(name);
      return state;
    };
    const wide = graph<Job>({ name: "wide" })
      .fork("fan", { branches: { a: "a1", b: "b1" }, join: "end", merge: (before) => before })
      .node("a1", step("a1"))
      .edge("a1", "a2")
      .node("a2", step("a2"))
      .edge("a2", "end")
      .node("b1", step("b1"))
      .edge("b1", "end")
      .node("end", step("end"))
      .edge("end", END)
      .entry("fan")
      .compile();
    await wide.enqueue({ n: 1 }, { store, runId: "r" });
    const working = start({ store, graphs: [wide] });
    await until(() => working.active === 1);
    const closed = working.close();
    release();
    await closed;
    expect(done.sort()).toEqual(["a1", "b1"]);
    await start({ store, graphs: [wide] }).idle();
    expect(done.sort()).toEqual(["a1", "a2", "b1", "end"]);
  });

  it("executes at most as many runs as the worker and the graph allow, and shares its places between graphs", async () => {
    const store = memoryRunStore();
    const [busy, rare, narrow] = [held("busy"), held("rare"), held("narrow")];
    for (let i = 0; i < 10; i++) await busy.graph.enqueue({ n: i }, { store });
    for (let i = 0; i < 2; i++) await rare.graph.enqueue({ n: i }, { store });
    for (let i = 0; i < 3; i++) await narrow.graph.enqueue({ n: i }, { store });
    const all = [busy, rare, narrow];
    const working = start({ store, graphs: [busy.graph, rare.graph, { graph: narrow.graph, concurrency: 1 }], concurrency: 6 });
    await until(() => all.reduce((sum, { gates }) => sum + gates.length, 0) === 6);
    expect([rare.most(), narrow.most()]).toEqual([2, 1]);
    expect(working.active).toBe(6);
    const idle = working.idle();
    for (let ended = false; !ended; ) {
      for (const { gates } of all) for (const open of gates.splice(0)) open();
      ended = await Promise.race([idle.then(() => true), sleep(5).then(() => false)]);
    }
    expect(narrow.most()).toBe(1);
    expect((await store.listRuns({ status: "completed" })).length).toBe(15);
  });

  it("starts at most as many runs per second as the graph allows", async () => {
    const store = memoryRunStore();
    for (let i = 0; i < 5; i++) await ask.enqueue({ n: i }, { store });
    start({ store, graphs: [{ graph: ask, perSecond: 2 }], pollMs: 10 });
    await until(() => events.filter(({ type }) => type === "ended").length >= 2);
    expect(events.filter(({ type }) => type === "claimed").length).toBeLessThan(5);
  });

  it("does not claim runs of another version of its graph, and reports them", async () => {
    const store = memoryRunStore();
    const changed = graph<Job>({ name: "ask", version: "2" })
      .node("ask", (state) => state)
      .edge("ask", END)
      .entry("ask")
      .compile();
    await ask.enqueue({ n: 1 }, { store, runId: "old" });
    await start({ store, graphs: [changed] }).idle();
    expect(await statusOf(store, "old")).toBe("queued");
    expect(events).toContainEqual({ type: "graph_changed", graph: "ask", runIds: ["old"] });
  });

  it("fails a run that ends its workers again and again, and a run whose input is not valid", async () => {
    const store = memoryRunStore();
    const checked = graph<Job>({
      name: "checked",
      parse(state) {
        if (typeof (state as Job).n !== "number") throw new Error("n is missing");
        return state as Job;
      },
    })
      .node("a", (state) => state)
      .edge("a", END)
      .entry("a")
      .compile();
    const about = { graph: "checked", fingerprint: checked.fingerprint };
    await store.enqueue({ ...newRun("bad"), ...about, first: { nodeId: "__start__", nextNode: "a", kind: "start", state: "{}" } });
    await store.enqueue({ ...newRun("poison"), ...about, first: { nodeId: "__start__", nextNode: "a", kind: "start", state: '{"n":1}' } });
    for (let claims = 0; claims < 3; claims++) {
      const [claim] = (await store.claim({ ...about, from: "queued", owner: "x", leaseMs: 60_000, limit: 2 })).filter(
        ({ lease }) => lease.runId === "poison",
      );
      await store.release(claim!.lease, { status: "failed" });
      await store.requeue("poison", { status: "queued", expected: (await store.getRun("poison"))!, keepClaims: true });
      const bad = (await store.getRun("bad"))!;
      if (bad.status === "running") await store.release({ runId: "bad", owner: "x", fence: bad.fence, until: "" }, { status: "queued" });
    }
    await start({ store, graphs: [checked], maxClaims: 3 }).idle();
    expect(await store.getRun("poison")).toMatchObject({ status: "failed", note: expect.stringContaining("without finishing a step") });
    expect(await store.getRun("bad")).toMatchObject({ status: "failed", note: expect.stringContaining("n is missing") });
  });

  it("retries a failed run as often as the graph says, with a delay", async () => {
    const store = memoryRunStore();
    let tries = 0;
    const flaky = graph<Job>({ name: "flaky" })
      .node("try", (state) => {
        if (++tries < 3) throw new Error("not yet");
        return state;
      })
      .edge("try", END)
      .entry("try")
      .compile();
    await flaky.enqueue({ n: 1 }, { store, runId: "r" });
    start({ store, graphs: [{ graph: flaky, retry: { attempts: 3, firstMs: 20 } }] });
    await until(async () => (await statusOf(store, "r")) === "completed");
    expect(tries).toBe(3);
    expect(events.filter(({ type }) => type === "failed")).toMatchObject([
      { retryInMs: expect.any(Number) },
      { retryInMs: expect.any(Number) },
    ]);
  });

  it("keeps working while the store fails, and reports it", async () => {
    const store = memoryRunStore();
    let failures = 2;
    const failing: RunStore = {
      ...store,
      claim: (query) => (failures-- > 0 ? Promise.reject(new Error("the store is down")) : store.claim(query)),
    };
    await ask.enqueue({ n: 1 }, { store, runId: "r" });
    await start({ store: failing, graphs: [ask] }).idle();
    expect(await statusOf(store, "r")).toBe("paused");
    expect(events.filter(({ type }) => type === "problem")).toHaveLength(2);
  });

  it("drains the inboxes of systems, each message once, by several workers", async () => {
    const shop = system({ systemId: "shop", storage: { storage: "memory" }, commitsPerSecond: 1_000 });
    const port = shop.component("till").port<number>("orders");
    for (let i = 0; i < 20; i++) await port.receive({ id: `m${i}`, offset: i, data: i });
    const handlers = {
      till: {
        orders: async (
          state: { get(key: string): Promise<unknown>; set(key: string, value: unknown): void },
          message: { data: unknown },
        ) => {
          if (message.data === 13 && (await state.get("failed")) === undefined) throw new Error("unlucky");
          state.set("sum", Number((await state.get("sum")) ?? 0) + Number(message.data));
        },
      },
    };
    const store = memoryRunStore();
    const workers = [1, 2].map(() => start({ store, graphs: [], inboxes: inboxes(shop, handlers) }));
    await Promise.all(workers.map((one) => one.idle()));
    expect(await shop.component("till").get("sum")).toBe(190 - 13);
    expect(events).toContainEqual(expect.objectContaining({ type: "drained", inbox: "shop/till/orders" }));
    for (const one of workers) await one.close();
    await shop.close();
  });

  it("refuses to start without work, and with the same graph twice", () => {
    const store = memoryRunStore();
    expect(() => worker({ store, graphs: [] })).toThrow("needs a graph or an inbox");
    expect(() => worker({ store, graphs: [ask, ask] })).toThrow("given twice");
    expect(() => worker({ store, graphs: [ask], concurrency: 0 })).toThrow("concurrency");
    for (const concurrency of [0, 1.5, Number.NaN])
      expect(() => worker({ store, graphs: [{ graph: ask, concurrency }] })).toThrow("concurrency of the graph");
    for (const perSecond of [0, -1, Number.NaN])
      expect(() => worker({ store, graphs: [{ graph: ask, perSecond }] })).toThrow("perSecond of the graph");
  });
});
