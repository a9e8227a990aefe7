import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { CairnError, decodeState, END, encodeState, graph, memoryRunStore, openRunStore, type RunStore } from "../../src/runs.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-properties-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;

describe("states as bytes", () => {
  const plain = fc.letrec((again) => ({
    any: fc.oneof(
      { depthSize: "small" },
      fc.string({ unit: "binary" }),
      fc.double(),
      fc.boolean(),
      fc.constant(null),
      fc.bigInt(),
      fc.date(),
      fc.uint8Array(),
      fc.array(again("any")),
      fc.dictionary(
        fc.string().filter((key) => key !== "__proto__"),
        again("any"),
      ),
      fc.array(fc.tuple(fc.string(), again("any"))).map((pairs) => new Map(pairs)),
      fc.array(fc.string()).map((items) => new Set(items)),
    ),
  })).any;

  it("come back as they were", () => {
    fc.assert(
      fc.property(plain, (value) => {
        expect(decodeState(encodeState(value))).toEqual(withUsualPrototypes(value));
      }),
    );
    for (const value of [Number.NaN, -0, Number.POSITIVE_INFINITY, [undefined], { $: 1 }, { $: ["d", 1] }, { a: { $: { $: 2 } } }])
      expect(decodeState(encodeState(value))).toEqual(value);
  });

  it("are never anything but data", () => {
    for (const value of [
      () => 1,
      Symbol("x"),
      { f() {} },
      new (class A {})(),
      new Error("x"),
      /x/,
      new Float32Array(1),
      Promise.resolve(),
      [{ x: class {} }],
    ])
      expect(() => encodeState(value)).toThrow(CairnError);
    const cycle: Record<string, unknown> = {};
    cycle.self = cycle;
    expect(() => encodeState(cycle)).toThrow(CairnError);
    expect(() => encodeState(JSON.parse('{"a":{"__proto__":{"x":1}}}'))).toThrow(CairnError);
    expect(() => decodeState(Buffer.from('{"a":{"__proto__":{"x":1}}}'))).toThrow(CairnError);
    expect(() => decodeState(Buffer.from('{"torn": '))).toThrow(CairnError);
    expect(() => decodeState(Buffer.from('#1{"$":["Function","alert()"]}'))).toThrow(CairnError);
  });
});

/** The verbs of a store on a few runs and nodes, so that they meet often. */
const verbs = fc.array(
  fc.oneof(
    fc.record({
      verb: fc.constant("save" as const),
      run: fc.nat(2),
      node: fc.nat(3),
      text: fc.string(),
      token: fc.option(fc.nat(3)),
      end: fc.boolean(),
    }),
    fc.record({ verb: fc.constant("start" as const), run: fc.nat(2) }),
    fc.record({ verb: fc.constant("acquire" as const), run: fc.nat(2) }),
    fc.record({ verb: fc.constant("renew" as const), run: fc.nat(2), token: fc.nat(3) }),
    fc.record({ verb: fc.constant("release" as const), run: fc.nat(2), token: fc.nat(3) }),
    fc.record({ verb: fc.constant("enqueue" as const), run: fc.nat(2), delayMs: fc.nat(1_000) }),
    fc.record({ verb: fc.constant("requeue" as const), run: fc.nat(2), fresh: fc.boolean(), keepClaims: fc.boolean() }),
    fc.record({
      verb: fc.constant("claim" as const),
      from: fc.constantFrom("queued" as const, "abandoned" as const),
      limit: fc.nat(2),
      ended: fc.boolean(),
    }),
    fc.record({ verb: fc.constant("answer" as const), run: fc.nat(2), expected: fc.nat(4) }),
    fc.record({ verb: fc.constant("delete" as const), run: fc.nat(2), node: fc.nat(3) }),
    fc.record({ verb: fc.constant("deleteRun" as const), run: fc.nat(2) }),
    fc.record({ verb: fc.constant("prune" as const), keepLast: fc.nat(3) }),
    fc.record({ verb: fc.constant("wait" as const), ms: fc.nat(1_500) }),
  ),
  { maxLength: 40 },
);
type Verb = typeof verbs extends fc.Arbitrary<(infer V)[]> ? V : never;

async function perform(store: RunStore, step: Verb): Promise<unknown> {
  const bytes = (text: string) => new Uint8Array(Buffer.from(text));
  switch (step.verb) {
    case "save": {
      const { run, node, text, token, end } = step;
      const options = { ...(token === null ? {} : { fence: token }), ...(end ? { status: "completed" as const } : {}) };
      return store.save({ runId: `r${run}`, nodeId: `n${node}`, state: bytes(text), nextNode: "x" }, options);
    }
    case "start": {
      const first = { nodeId: "__start__", state: bytes("first"), kind: "start" } as const;
      return store.start({ runId: `r${step.run}`, graph: "g", fingerprint: "f", owner: "me", leaseMs: 1_000, first });
    }
    case "acquire":
      return store.acquire(`r${step.run}`, { owner: "me", leaseMs: 1_000 });
    case "renew":
      return store.renew({ runId: `r${step.run}`, owner: "me", fence: step.token, until: "" }, 1_000);
    case "release":
      return store.release({ runId: `r${step.run}`, owner: "me", fence: step.token, until: "" }, { status: "failed", note: "why" });
    case "enqueue": {
      const first = { nodeId: "__start__", state: bytes("first"), kind: "start" } as const;
      return store.enqueue({ runId: `r${step.run}`, graph: "g", fingerprint: "f", delayMs: step.delayMs, first });
    }
    case "requeue": {
      const known = step.fresh ? await store.getRun(`r${step.run}`) : undefined;
      const expected = known ?? { fence: 1, lastSequence: 1, status: "failed" as const };
      return store.requeue(`r${step.run}`, { status: "queued", expected, keepClaims: step.keepClaims });
    }
    case "claim": {
      const query = { graph: "g", fingerprint: "f", from: step.from, owner: "me", leaseMs: 1_000, limit: step.limit } as const;
      return store.claim({ ...query, endedOwners: step.ended ? ["me"] : [] });
    }
    case "answer":
      return store.save(
        { runId: `r${step.run}`, nodeId: "n0", state: bytes("answer"), kind: "answer" },
        { status: "answered", expectedSequence: step.expected },
      );
    case "delete":
      return store.delete(`r${step.run}`, `n${step.node}`);
    case "deleteRun":
      return store.deleteRun(`r${step.run}`);
    case "prune":
      return store.prune({ keepLast: step.keepLast });
  }
}

/** Everything that can be seen of a store. */
async function view(store: RunStore): Promise<unknown> {
  const runs = await store.listRuns({ limit: 100 });
  const seen = [];
  for (const run of runs) {
    const history = await store.history(run.runId, { limit: 1_000 });
    const states = [];
    for (const { sequence } of history) states.push(Buffer.from((await store.loadAt(run.runId, sequence)).state).toString());
    seen.push({ run, list: await store.list(run.runId), history, states });
  }
  return seen.sort((a, b) => (a.run.runId < b.run.runId ? -1 : 1));
}

/** The same verbs at the same times on two stores: every answer and everything that can be seen is the same. */
describe.each<[string, (now: () => string) => Promise<RunStore>]>([
  ["files", (now) => openRunStore({ storage: "file", folder: join(folder, `${files++}`), now })],
  ["SQLite", (now) => openRunStore({ storage: "sqlite", path: join(folder, `${files++}.db`), now })],
])("a store of %s", (_, open) => {
  it("behaves like the one in memory, whatever is asked of it", { timeout: 600_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(verbs, async (steps) => {
        let time = Date.parse("2026-01-01T00:00:00.000Z");
        const now = () => new Date(time).toISOString();
        const [model, real] = [memoryRunStore({ now }), await open(now)];
        for (const step of steps) {
          time += step.verb === "wait" ? step.ms : 1;
          if (step.verb === "wait") continue;
          const answer = (store: RunStore) =>
            perform(store, step).then(
              (value) => ({ value: value ?? null }),
              (error) => ({ code: error.code, kind: error.details?.kind }),
            );
          expect(await answer(real), JSON.stringify(step)).toEqual(await answer(model));
        }
        expect(await view(real)).toEqual(await view(model));
        await real.close();
      }),
      { numRuns: process.env.CAIRN_SOAK === "1" ? 500 : 25 },
    );
  });
});

describe("the engine", () => {
  it("comes to the same result however often it is interrupted", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.boolean(), { minLength: 1, maxLength: 12 }),
        fc.array(fc.nat(20), { maxLength: 6 }),
        async (parallel, crashes) => {
          const failAt = new Set(crashes);
          let calls = 0;
          const done: string[] = [];
          const step = (name: string) => (state: { readonly path: readonly string[] }) => {
            if (failAt.has(calls++)) throw new Error("crash");
            done.push(name);
            return { path: [...state.path, name] };
          };
          // A chain of steps, some of them two side by side.
          const builder = graph<{ readonly path: readonly string[] }>().entry("s0");
          for (const [i, wide] of parallel.entries()) {
            const next = i + 1 < parallel.length ? `s${i + 1}` : END;
            if (!wide) builder.node(`s${i}`, step(`s${i}`)).edge(`s${i}`, next);
            else {
              builder
                .node(`a${i}`, step(`a${i}`))
                .node(`b${i}`, step(`b${i}`))
                .node(`j${i}`, (state) => state);
              builder.edge(`a${i}`, `j${i}`).edge(`b${i}`, `j${i}`).edge(`j${i}`, next);
              builder.fork(`s${i}`, {
                branches: { a: `a${i}`, b: `b${i}` },
                join: `j${i}`,
                merge: (before, { a, b }) => ({ path: [...a.path, ...b.path.slice(before.path.length)] }),
              });
            }
          }
          const compiled = builder.compile();
          const store = memoryRunStore();
          const expected = parallel.flatMap((wide, i) => (wide ? [`a${i}`, `b${i}`] : [`s${i}`]));
          let result = await compiled.run({ path: [] }, { store, runId: "r" }).catch(() => undefined);
          while (!result) result = await compiled.resume("r", { store }).catch(() => undefined);
          expect(result).toMatchObject({ status: "completed", state: { path: expected } });
          expect([...done].sort()).toEqual([...expected].sort());
        },
      ),
      { numRuns: 100 },
    );
  });
});

/** Objects without a prototype come back with the usual one. */
function withUsualPrototypes(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(withUsualPrototypes);
  if (value instanceof Map) return new Map([...value].map(([key, item]) => [key, withUsualPrototypes(item)]));
  if (value instanceof Date || value instanceof Set || value instanceof Uint8Array) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withUsualPrototypes(item)]));
}
