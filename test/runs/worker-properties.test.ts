import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { answerQuestion } from "../../src/runs/questions.ts";
import { runRequests } from "../../src/runs/requests.ts";
import { CairnError, END, graph, memoryRunStore, openRunStore, type RunStore } from "../../src/runs.ts";
import { counts } from "../faults/processes.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-worker-properties-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;

const LEASE_MS = 10_000;
const EXPECTED = ["a", "l", "r", "ask", "end"];

interface Trail {
  readonly trail: readonly string[];
  readonly answer?: unknown;
}

const crash = fc.option(fc.record({ atWrite: fc.integer({ min: 1, max: 12 }), applied: fc.boolean() }));
const execution = fc.record({
  from: fc.constantFrom("queued" as const, "abandoned" as const),
  crash,
  stopAfterStep: fc.boolean(),
  turns: fc.nat(12),
});
const commands = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant("enqueue" as const), run: fc.nat(2) }),
    fc.record({ do: fc.constant("work" as const), workers: fc.array(execution, { minLength: 1, maxLength: 3 }) }),
    fc.record({ do: fc.constant("answer" as const), run: fc.nat(2), answer: fc.nat(1) }),
    fc.record({ do: fc.constant("resume" as const), run: fc.nat(2) }),
    fc.record({ do: fc.constant("wait" as const), ms: fc.nat(2 * LEASE_MS) }),
  ),
  { minLength: 3, maxLength: 25 },
);
type Command = typeof commands extends fc.Arbitrary<(infer C)[]> ? C : never;
type Execution = typeof execution extends fc.Arbitrary<infer E> ? E : never;
type Crash = { readonly atWrite: number; readonly applied: boolean } | null;

/** A store whose process dies at a write: before it has an effect, or after. Then no call returns. */
function mortal(store: RunStore, crash: Crash): { readonly store: RunStore; readonly dead: () => boolean } {
  let writes = 0;
  let dead = false;
  const around =
    <Args extends readonly unknown[], T>(verb: (...args: Args) => Promise<T>) =>
    async (...args: Args): Promise<T> => {
      if (dead) throw new Error("killed");
      const last = crash !== null && ++writes === crash.atWrite;
      if (last) dead = true;
      if (last && !crash.applied) throw new Error("killed");
      const result = await verb(...args);
      if (last) throw new Error("killed");
      return result;
    };
  const { save, release, renew } = store;
  return { store: { ...store, save: around(save), release: around(release), renew: around(renew) }, dead: () => dead };
}

/** A place with one store and the record of what its workers did. */
class Place {
  timeMs = Date.parse("2026-01-01T00:00:00.000Z");
  readonly now = () => new Date(++this.timeMs).toISOString();
  /** The run that each living worker executes. */
  readonly executing = new Map<string, object>();
  readonly overlaps: string[] = [];
  readonly keys = new Map<string, Set<string>>();
  readonly answers = new Map<string, number>();
  readonly store: RunStore;

  constructor(open: (now: () => string) => RunStore) {
    this.store = open(this.now);
  }

  /** The graph of one worker. */
  graphOf(worker: object, isDead: () => boolean) {
    const step =
      (name: string) =>
      async (state: Trail, { runId, idempotencyKey }: { runId: string; idempotencyKey: string }) => {
        if (isDead()) throw new Error("killed");
        const other = this.executing.get(runId);
        if (other !== undefined && other !== worker) this.overlaps.push(runId);
        this.executing.set(runId, worker);
        await new Promise((resolve) => setImmediate(resolve));
        const seen = this.keys.get(`${runId} ${name}`) ?? new Set();
        this.keys.set(`${runId} ${name}`, seen.add(idempotencyKey));
        return { ...state, trail: [...state.trail, name] };
      };
    return graph<Trail>({ name: "work" })
      .node("a", step("a"))
      .edge("a", "fan")
      .fork("fan", {
        branches: { left: "l", right: "r" },
        join: "ask",
        merge: (before, { left, right }) => ({ trail: [...left.trail, ...right.trail.slice(before.trail.length)] }),
      })
      .node("l", step("l"))
      .edge("l", "ask")
      .node("r", step("r"))
      .edge("r", "ask")
      .node("ask", async (state, context) => ({ ...(await step("ask")(state, context)), answer: context.interrupt("?") }))
      .edge("ask", "end")
      .node("end", step("end"))
      .edge("end", END)
      .entry("a")
      .compile();
  }

  /** Claims a run and executes it until it ends, pauses, is handed over, or the worker dies. */
  async work({ from, crash, stopAfterStep, turns }: Execution): Promise<number> {
    // Claims meet executions that have already begun.
    for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
    const self = {};
    const { store, dead } = mortal(this.store, crash);
    const compiled = this.graphOf(self, dead);
    const { name, fingerprint } = compiled;
    const [claim] = await this.store.claim({ graph: name, fingerprint, from, owner: crypto.randomUUID(), leaseMs: LEASE_MS, limit: 1 });
    if (!claim) return 0;
    const { runId } = claim.lease;
    const afterStep = new AbortController();
    const onEvent = ({ type }: { type: string }) => {
      if (stopAfterStep && type === "step_finished") afterStep.abort();
    };
    const handOver = { afterStep: afterStep.signal, now: new AbortController().signal };
    // Waiting for a store that is dead takes no time.
    await compiled.continueClaimed(claim, { store, leaseMs: LEASE_MS, storeWaitMs: 0, handOver, onEvent }).catch((error: unknown) => {
      if (!(error instanceof Error)) throw error;
    });
    if (this.executing.get(runId) === self) this.executing.delete(runId);
    return 1;
  }

  async perform(command: Command): Promise<void> {
    switch (command.do) {
      case "enqueue":
        await this.graphOf({}, () => false)
          .enqueue({ trail: [] }, { store: this.store, runId: `r${command.run}` })
          .catch(expectCode("conflict"));
        break;
      case "work":
        await Promise.all(command.workers.map((worker) => this.work(worker)));
        break;
      case "answer":
        await this.answer(`r${command.run}`, command.answer);
        break;
      case "resume":
        await runRequests({ store: this.store, newId: () => "" })
          .resume({ runId: `r${command.run}` })
          .catch(expectCode("conflict", "not_found"));
        break;
      case "wait":
        this.timeMs += command.ms;
    }
  }

  /** Answers the question of a run, and checks that the first answer stays. */
  async answer(runId: string, answer: number): Promise<void> {
    const stored = await answerQuestion(this.store, runId, { answer }).catch(expectCode("conflict", "not_found"));
    if (stored) expect(this.answers.get(runId) ?? answer).toBe(answer);
    if (stored) this.answers.set(runId, answer);
  }

  /** Lets healthy workers finish everything. */
  async finish(): Promise<void> {
    for (let round = 0; round < 40; round++) {
      for (const from of ["queued", "abandoned"] as const)
        while ((await this.work({ from, crash: null, stopAfterStep: false, turns: 0 })) > 0);
      for (const { runId, status } of await this.store.listRuns()) {
        if (status === "paused") await this.answer(runId, this.answers.get(runId) ?? 0);
        if (status === "failed" || status === "cancelled") await runRequests({ store: this.store, newId: () => "" }).resume({ runId });
      }
      if ((await this.store.listRuns()).every(({ status }) => status === "completed")) return;
      this.timeMs += 300_001; // longer than every lease and delay
    }
  }
}

function expectCode(...codes: readonly string[]) {
  return (error: unknown) => {
    if (error instanceof CairnError && codes.includes(error.code)) return undefined;
    throw error;
  };
}

describe.each<[string, (now: () => string) => Promise<RunStore>]>([
  ["memory", async (now) => memoryRunStore({ now })],
  ["SQLite", (now) => openRunStore({ storage: "sqlite", path: join(folder, `${files++}.db`), now })],
])("workers on %s that start, stop and die in any order", (_, open) => {
  it("lose no run, finish each step once, and never execute a run twice at the same time", { timeout: 600_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(commands, async (steps) => {
        let now = () => "";
        const store = await open(() => now());
        const place = new Place(() => store);
        now = place.now;
        const queued = new Set<string>();
        for (const step of [{ do: "enqueue", run: 0 } as const, ...steps]) {
          if (step.do === "enqueue") queued.add(`r${step.run}`);
          await place.perform(step);
        }
        await place.finish();
        expect(place.overlaps).toEqual([]);
        const runs = await store.listRuns();
        expect(runs.map(({ runId, status }) => [runId, status]).sort()).toEqual([...queued].sort().map((runId) => [runId, "completed"]));
        for (const runId of queued) {
          const finished = (await store.history(runId)).filter(({ kind }) => kind === "node").map(({ nodeId }) => nodeId);
          expect(finished.sort()).toEqual([...EXPECTED, "fan"].sort());
          const { state } = (await place.graphOf({}, () => false).resume(runId, { store })) as { state: Trail };
          expect(state).toEqual({ trail: EXPECTED, answer: place.answers.get(runId) });
        }
        // A step that a crash interrupted is repeated with the same key.
        for (const [at, keys] of place.keys) expect(keys.size, at).toBe(1);
        await store.close();
      }),
      { numRuns: counts({ short: 40, soak: 600 }) },
    );
  });
});
