import { describe, expect, it } from "vitest";
import { END, graph, RunError } from "../../src/runs.ts";
import { wrongInput } from "../support/wrong-input.ts";

interface Count {
  readonly n: number;
  readonly path: readonly string[];
}
const zero: Count = { n: 0, path: [] };
const add = (name: string) => (state: Count) => ({ n: state.n + 1, path: [...state.path, name] });

describe("compiling a graph", () => {
  it("reports every fault at once", () => {
    const broken = graph<Count>({ name: "broken" })
      .node("a", add("a"))
      .node("a", add("a"))
      .node("__end__", add("x"))
      .node("no/slash", add("x"))
      .edge("a", "ghost")
      .node("x", add("x"))
      .node("y", add("y"))
      .edge("x", "y")
      .edge("y", "x")
      .node("lost", add("lost"))
      .node("toLoop", add("toLoop"))
      .edge("toLoop", "x")
      .node("twice", add("twice"))
      .edge("twice", END)
      .edge("twice", "a")
      .fork("fan", { branches: { left: "x" }, join: "twice", merge: (before) => before });
    const faults = faultsOf(() => broken.compile());
    expect(faults.map(({ kind, node }) => `${kind} ${node ?? ""}`.trim()).sort()).toEqual(
      [
        "bad_fork fan",
        "cycle_without_exit x",
        "cycle_without_exit y",
        "duplicate_name a",
        "invalid_name no/slash",
        "no_entry",
        "no_exit lost",
        "no_path_to_end toLoop",
        "reserved_name __end__",
        "second_exit twice",
        "unknown_node ghost",
      ].sort(),
    );
  });

  it("refuses a fork whose branch leaves without its join", () => {
    const broken = graph<Count>()
      .node("a", add("a"))
      .branch("a", () => END, [END, "j"])
      .node("j", add("j"))
      .edge("j", END)
      .fork("fan", { branches: { a: "a" }, join: "j", merge: (before) => before })
      .entry("fan");
    expect(faultsOf(() => broken.compile()).map(({ kind }) => kind)).toEqual(["bad_fork"]);
  });

  it("gives a graph that later changes of the builder do not touch", async () => {
    const builder = graph<Count>().node("a", add("a")).edge("a", END).entry("a");
    const compiled = builder.compile();
    const { fingerprint } = compiled;
    builder.node("b", add("b")).edge("b", END);
    expect(builder.compile().fingerprint).not.toBe(fingerprint);
    expect(compiled.fingerprint).toBe(fingerprint);
    expect(Object.isFrozen(compiled)).toBe(true);
    expect(await compiled.run(zero)).toMatchObject({ status: "completed", state: { path: ["a"] } });
  });

  it("has a fingerprint of its shape and version, not of the order it was written in", () => {
    const one = () => graph<Count>({ name: "g" });
    const a = one().node("a", add("a")).node("b", add("b")).edge("a", "b").edge("b", END).entry("a").compile();
    const b = one().entry("a").edge("b", END).edge("a", "b").node("b", add("other code")).node("a", add("a")).compile();
    const c = graph<Count>({ name: "g", version: "2" })
      .node("a", add("a"))
      .node("b", add("b"))
      .edge("a", "b")
      .edge("b", END)
      .entry("a")
      .compile();
    expect(b.fingerprint).toBe(a.fingerprint);
    expect(c.fingerprint).not.toBe(a.fingerprint);
  });

  it("draws itself as Mermaid text that no name can break", () => {
    const text = graph<Count>()
      .node('say "hi"] --> x', add("a"))
      .branch('say "hi"] --> x', () => END, [END, "fan"])
      .fork("fan", { branches: { l: "l", r: "r" }, join: "j", merge: (before) => before })
      .node("l", add("l"))
      .edge("l", "j")
      .node("r", add("r"))
      .edge("r", "j")
      .node("j", add("j"))
      .edge("j", END)
      .entry('say "hi"] --> x')
      .compile()
      .toMermaid();
    expect(text).toBe(
      [
        "flowchart TD",
        "  n5((start))",
        '  n0["say #34;hi#34;] --#62; x"]',
        '  n1{{"fan"}}',
        '  n2["l"]',
        '  n3["r"]',
        '  n4["j"]',
        "  n6((end))",
        "  n5 --> n0",
        "  n0 -.-> n6",
        "  n0 -.-> n1",
        '  n1 ==>|"l"| n2',
        '  n1 ==>|"r"| n3',
        "  n2 --> n4",
        "  n3 --> n4",
        "  n4 --> n6",
      ].join("\n"),
    );
  });
});

describe("running a graph", () => {
  it("follows edges, routers and loops", async () => {
    const loop = graph<Count>()
      .node("a", add("a"))
      .node("b", async (state) => add("b")(state))
      .edge("a", "b")
      .branch("b", async ({ n }) => (n < 6 ? "a" : END), ["a", END])
      .entry("a")
      .compile();
    const result = await loop.run(zero);
    expect(result.state).toEqual({ n: 6, path: ["a", "b", "a", "b", "a", "b"] });
  });

  it("stops at the iteration limit, which has a limit itself", async () => {
    const endless = graph<Count>()
      .node("a", ({ n }) => ({ n: n + 1, path: [] }))
      .branch("a", () => "a", ["a", END])
      .entry("a")
      .compile();
    await expect(endless.run(zero)).rejects.toMatchObject({ kind: "max_iterations", node: "a", state: { n: 1_000 } });
    await expect(endless.run(zero, { maxIterations: 100_000 })).rejects.toMatchObject({ kind: "max_iterations", state: { n: 100_000 } });
    await expect(endless.run(zero, { maxIterations: 100_001 })).rejects.toMatchObject({ code: "invalid_input" });
  });

  it("catches whatever a step throws, and reports where and with what state", async () => {
    for (const thrown of [new Error("boom"), "text", undefined, null, 7, { odd: true }]) {
      const failing = graph<Count>()
        .node("a", add("a"))
        .edge("a", "bad")
        .node("bad", () => {
          throw thrown;
        })
        .edge("bad", END)
        .entry("a")
        .compile();
      const error = await failing.run(zero, { runId: "r" }).catch((error) => error);
      expect(error).toBeInstanceOf(RunError);
      expect(error).toMatchObject({ kind: "node", code: "internal", node: "bad", runId: "r", state: { path: ["a"] } });
      if (thrown instanceof Error) expect(error.cause).toBe(thrown);
    }
    const empty = graph<Count>()
      .node("a", () => wrongInput<Count>(undefined))
      .edge("a", END)
      .entry("a")
      .compile();
    await expect(empty.run(zero)).rejects.toMatchObject({ kind: "node", node: "a" });
  });

  it("names the router that failed or chose what it may not", async () => {
    const routed = (router: () => string) => graph<Count>().node("a", add("a")).branch("a", router, [END]).entry("a").compile();
    await expect(routed(() => "nowhere").run(zero)).rejects.toMatchObject({ kind: "router", node: "a", state: { n: 1 } });
    await expect(
      routed(() => {
        throw new Error("lost");
      }).run(zero),
    ).rejects.toMatchObject({ kind: "router", message: expect.stringContaining("lost") });
  });

  it("tries again by the kind of the failure", async () => {
    let calls = 0;
    const flaky = (error: () => unknown, failures: number) => {
      calls = 0;
      return graph<Count>()
        .node(
          "a",
          (state, { attempt }) => {
            calls++;
            expect(attempt).toBe(calls);
            if (calls <= failures) throw error();
            return add("a")(state);
          },
          {
            retry: [
              { on: ["unavailable"], attempts: 2, backoffMs: 1 },
              { attempts: 4, backoffMs: 1 },
            ],
          },
        )
        .edge("a", END)
        .entry("a")
        .compile();
    };
    const { CairnError } = await import("../../src/runs.ts");
    expect(await flaky(() => new Error("x"), 3).run(zero)).toMatchObject({ status: "completed" });
    await expect(flaky(() => new Error("x"), 4).run(zero)).rejects.toMatchObject({ kind: "node" });
    await expect(flaky(() => new CairnError("unavailable", "away"), 2).run(zero)).rejects.toMatchObject({
      kind: "node",
      code: "unavailable",
    });
    await expect(flaky(() => new TypeError("a bug"), 1).run(zero)).rejects.toMatchObject({ kind: "node" });
    expect(calls).toBe(1);
  });

  it("limits the time of a step, and aborts it", async () => {
    let reported = false;
    const slow = graph<Count>()
      .node(
        "slow",
        (_state, { signal }) =>
          new Promise<Count>((_, reject) => {
            signal.addEventListener("abort", () => {
              reported = true;
              reject(signal.reason);
            });
          }),
        { timeoutMs: 20, retry: { on: ["timeout"], attempts: 2, backoffMs: 1 } },
      )
      .edge("slow", END)
      .entry("slow")
      .compile();
    await expect(slow.run(zero)).rejects.toMatchObject({ kind: "timeout", code: "timeout", node: "slow", state: zero });
    expect(reported).toBe(true);
  });

  it("ends the whole run on cancellation or when its time is up, also in a step that does not listen", async () => {
    const deaf = graph<Count>()
      .node("deaf", () => new Promise<Count>(() => {}))
      .edge("deaf", END)
      .entry("deaf")
      .compile();
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 10);
    await expect(deaf.run(zero, { signal: controller.signal })).rejects.toMatchObject({
      kind: "cancelled",
      code: "cancelled",
      node: "deaf",
    });
    await expect(deaf.run(zero, { signal: AbortSignal.abort() })).rejects.toMatchObject({ kind: "cancelled" });
    await expect(deaf.run(zero, { timeoutMs: 10 })).rejects.toMatchObject({ kind: "timeout", state: zero });
  });

  it("can be cancelled in a loop that never waits for anything", async () => {
    const busy = graph<Count>()
      .node("a", (state) => state)
      .branch("a", () => "a", ["a", END])
      .entry("a")
      .compile();
    await expect(busy.run(zero, { timeoutMs: 30, maxIterations: 100_000 })).rejects.toMatchObject({
      kind: expect.stringMatching(/timeout|max_iterations/),
    });
  });

  it("checks the state that is handed in", async () => {
    const strict = graph<Count>({
      parse: (state) => {
        if (typeof (state as Count).n !== "number") throw new Error("n must be a number");
        return state as Count;
      },
    })
      .node("a", add("a"))
      .edge("a", END)
      .entry("a")
      .compile();
    await expect(strict.run(wrongInput({ n: "1" }))).rejects.toMatchObject({ kind: "state", code: "invalid_input" });
  });
});

describe("forks and sub-graphs", () => {
  const fan = (left: (state: Count) => Count | Promise<Count>, onError: "fail-fast" | "collect" = "fail-fast") =>
    graph<Count>()
      .fork("fan", {
        branches: { left: "left", right: "right" },
        join: "join",
        onError,
        merge: (before, results, failures) => ({
          n: before.n + Object.values(results).length,
          path: [...Object.values(results).flatMap(({ path }) => path), ...Object.keys(failures).map((name) => `failed:${name}`)],
        }),
      })
      .node("left", left)
      .edge("left", "join")
      .node("right", async (state) => {
        await new Promise((resolve) => setTimeout(resolve, 5));
        return add("right")(state);
      })
      .edge("right", "right2")
      .node("right2", add("right2"))
      .edge("right2", "join")
      .node("join", add("join"))
      .edge("join", END)
      .entry("fan")
      .compile();

  it("runs branches at the same time and merges what they come to", async () => {
    expect((await fan(add("left")).run(zero)).state).toEqual({ n: 3, path: ["left", "right", "right2", "join"] });
  });

  it("gives each branch a copy of the state", async () => {
    const result = await fan((state) => {
      (state.path as string[]).push("mine");
      return state;
    }).run(zero);
    expect(result.state.path).toEqual(["mine", "right", "right2", "join"]);
    expect(zero.path).toEqual([]);
  });

  const boom = () => {
    throw new Error("left is broken");
  };
  it("ends the others when one fails, or lets them end and passes the failures to the merge", async () => {
    await expect(fan(boom).run(zero)).rejects.toMatchObject({ kind: "fork", node: "fan", cause: { kind: "node", node: "left" } });
    expect((await fan(boom, "collect").run(zero)).state.path).toEqual(["right", "right2", "failed:left", "join"]);
  });

  it("names a merge that fails", async () => {
    const bad = graph<Count>()
      .fork("fan", {
        branches: { a: "a" },
        join: END,
        merge: () => {
          throw new Error("no");
        },
      })
      .node("a", add("a"))
      .edge("a", END)
      .entry("fan")
      .compile();
    await expect(bad.run(zero)).rejects.toMatchObject({ kind: "fork", node: "fan" });
  });

  it("runs a graph inside a graph, forks inside forks", async () => {
    const inner = fan(add("left"));
    const outer = graph<{ readonly all: readonly string[] }>()
      .fork("twice", {
        branches: { x: "x", y: "y" },
        join: "done",
        merge: (_, { x, y }) => ({ all: [...x.all, ...y.all] }),
      })
      .subgraph("x", inner, { enter: () => zero, leave: ({ all }, { path }) => ({ all: [...all, "x", ...path] }) })
      .edge("x", "done")
      .subgraph("y", inner, { enter: () => zero, leave: ({ all }, { n }) => ({ all: [...all, `y${n}`] }) })
      .edge("y", "done")
      .node("done", (state) => state)
      .edge("done", END)
      .entry("twice")
      .compile();
    expect((await outer.run({ all: [] })).state.all).toEqual(["x", "left", "right", "right2", "join", "y3"]);
  });
});

describe("watching a run", () => {
  const two = graph<Count>()
    .node("a", (state, { progress }) => {
      progress({ half: true });
      return add("a")(state);
    })
    .edge("a", "b")
    .node("b", add("b"))
    .edge("b", END)
    .entry("a")
    .compile();

  it("reports every step as it happens", async () => {
    const seen: string[] = [];
    for await (const event of two.stream(zero)) seen.push(`${event.type}${"node" in event ? ` ${event.node}` : ""}`);
    expect(seen).toEqual([
      "run_started",
      "step_started a",
      "progress a",
      "step_finished a",
      "step_started b",
      "step_finished b",
      "run_completed",
    ]);
  });

  it("cancels the run when the watcher leaves, and hands a failure to it", async () => {
    let ran = 0;
    const long = graph<Count>()
      .node("a", async (state) => {
        ran++;
        await new Promise((resolve) => setTimeout(resolve, 1));
        return state;
      })
      .branch("a", () => "a", ["a", END])
      .entry("a")
      .compile();
    for await (const event of long.stream(zero)) if (event.type === "step_finished") break;
    const after = ran;
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(ran).toBe(after);
    await expect(async () => {
      for await (const _ of long.stream(zero, { maxIterations: 3 }));
    }).rejects.toMatchObject({ kind: "max_iterations" });
  });

  it("slows down for a slow watcher instead of piling events up", async () => {
    const loop = graph<Count>()
      .node("a", ({ n }) => ({ n: n + 1, path: [] }))
      .branch("a", ({ n }) => (n < 5_000 ? "a" : END), ["a", END])
      .entry("a")
      .compile();
    let most = 0;
    let last = 0;
    for await (const event of loop.stream(zero, {
      maxIterations: 10_000,
      onEvent: (event) => {
        if (event.type === "step_finished") last = event.state.n;
      },
    })) {
      if (event.type !== "step_finished") continue;
      most = Math.max(most, last - event.state.n);
    }
    expect(most).toBeLessThan(1_100);
    expect(last).toBe(5_000);
  });

  it("survives a watcher that throws, and lets a tracer stand around each step", async () => {
    const spans: string[] = [];
    const result = await two.run(zero, {
      onEvent: () => {
        throw new Error("watcher");
      },
      aroundStep: async ({ node, attempt }, work) => {
        const done = await work();
        spans.push(`${node} ${attempt}`);
        return done;
      },
    });
    expect(result.status).toBe("completed");
    expect(spans).toEqual(["a 1", "b 1"]);
  });
});

function faultsOf(compile: () => unknown): { kind: string; node?: string }[] {
  try {
    compile();
  } catch (error) {
    return (error as RunError).details!.faults as { kind: string; node?: string }[];
  }
  throw new Error("no fault was found");
}
