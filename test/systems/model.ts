import fc from "fast-check";
import { expect } from "vitest";
import { type Effect, type System, type SystemStorage, system } from "../../src/systems.ts";

const MAX_ATTEMPTS = 2;

/** What people may do to a port, from either of two processes that share the system: few messages, so that they meet often. */
const delivery = fc.record({ message: fc.nat(7), offset: fc.option(fc.nat(9)), effect: fc.constantFrom("ok", "fail", "none") });
const action = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      verb: fc.constant("receive" as const),
      who: fc.nat(1),
      deliveries: fc.array(delivery, { minLength: 1, maxLength: 5 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ verb: fc.constant("work" as const), who: fc.nat(1), effect: fc.constantFrom("ok", "fail") }) },
  { weight: 1, arbitrary: fc.record({ verb: fc.constant("requeue" as const), who: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ verb: fc.constant("prune" as const), who: fc.nat(1), keepLast: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ verb: fc.constant("snapshot" as const), who: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ verb: fc.constant("restore" as const), who: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ verb: fc.constant("crash" as const), who: fc.nat(1) }) },
);
export const actions = fc.array(action, { maxLength: 30 });
type Action = typeof action extends fc.Arbitrary<infer A> ? A : never;
type EffectKind = "ok" | "fail" | "none";

interface Row {
  readonly offset: number;
  readonly status: "pending" | "done" | "dead";
  readonly attempts: number;
}

/** What a port should be, in the plainest way. */
interface Model {
  readonly rows: Map<string, Row>;
  readonly known: Set<number>;
  prunedTo: number;
  readonly applied: Map<string, number>;
}

function positionOf({ known }: Model): number {
  let position = -1;
  while (known.has(position + 1)) position++;
  return position;
}

function copyOf({ rows, known, prunedTo, applied }: Model): Model {
  return { rows: new Map(rows), known: new Set(known), prunedTo, applied: new Map(applied) };
}

function receive(model: Model, id: string, offset: number, effect: EffectKind): string {
  const row = model.rows.get(id);
  if (!row && model.known.has(offset)) {
    const owned = offset > model.prunedTo && [...model.rows.values()].some((other) => other.offset === offset);
    return owned ? "conflict" : "duplicate";
  }
  model.known.add(offset);
  if (row && (row.status !== "pending" || effect === "none")) return row.status === "dead" ? "dead" : "duplicate";
  return attempt(model, id, row ?? { offset, status: "pending", attempts: 0 }, effect);
}

function attempt(model: Model, id: string, row: Row, effect: EffectKind): string {
  if (effect === "none") {
    model.rows.set(id, row);
    return "stored";
  }
  if (effect === "ok") {
    model.rows.set(id, { ...row, status: "done" });
    model.applied.set(id, (model.applied.get(id) ?? 0) + 1);
    return "done";
  }
  const attempts = row.attempts + 1;
  const status = attempts >= MAX_ATTEMPTS ? "dead" : "pending";
  model.rows.set(id, { ...row, status, attempts });
  return status === "dead" ? "dead" : "failed";
}

function withStatus({ rows }: Model, status: Row["status"]): [string, Row][] {
  return [...rows].filter(([, row]) => row.status === status).sort(([, a], [, b]) => a.offset - b.offset);
}

const EFFECTS: Record<"ok" | "fail", Effect> = {
  async ok(state, { id }) {
    const applied = (await state.get<Record<string, number>>("applied")) ?? {};
    state.set("applied", { ...applied, [id]: (applied[id] ?? 0) + 1 });
  },
  async fail(state, message) {
    await EFFECTS.ok(state, message); // must leave no trace
    throw new Error("no");
  },
};

/** Does the same to the model and to a real system, and compares everything that can be seen. */
export async function behavesLikeTheModel(storage: SystemStorage, systemId: string, steps: readonly Action[]): Promise<void> {
  const open = () =>
    system({ systemId, storage, maxAttempts: MAX_ATTEMPTS, snapshots: { everyMs: 0, keep: 3 }, commitsPerSecond: 100_000 });
  const processes: [System, System] = [open(), open()];
  let model: Model = { rows: new Map(), known: new Set(), prunedTo: -1, applied: new Map() };
  let snapshot: Model | undefined;
  for (const step of steps) {
    const shop = processes[step.who as 0 | 1];
    const port = shop.component("c").port("p");
    switch (step.verb) {
      case "receive": {
        const sent = step.deliveries.map(({ message, offset, effect }) => ({ id: `m${message}`, offset: offset ?? message, effect }));
        const answers = await Promise.allSettled(
          sent.map(({ id, offset, effect }) => port.receive({ id, offset, data: id }, effect === "none" ? undefined : EFFECTS[effect])),
        );
        const outcomes = answers.map((answer) => (answer.status === "fulfilled" ? answer.value.outcome : answer.reason.code));
        expect(outcomes, JSON.stringify(step)).toEqual(sent.map(({ id, offset, effect }) => receive(model, id, offset, effect)));
        break;
      }
      case "work": {
        const outcomes = withStatus(model, "pending").map(([id, row]) => attempt(model, id, row, step.effect));
        const count = (outcome: string) => outcomes.filter((found) => found === outcome).length;
        expect(await port.work(EFFECTS[step.effect])).toEqual({ done: count("done"), failed: count("failed"), dead: count("dead") });
        break;
      }
      case "requeue": {
        const dead = withStatus(model, "dead");
        for (const [id, row] of dead) model.rows.set(id, { ...row, status: "pending", attempts: 0 });
        expect(await port.requeue()).toBe(dead.length);
        break;
      }
      case "prune": {
        const mark = positionOf(model) - step.keepLast;
        model.prunedTo = Math.max(model.prunedTo, mark);
        const gone = withStatus(model, "done").filter(([, { offset }]) => offset <= mark);
        for (const [id] of gone) model.rows.delete(id);
        expect(await port.prune({ keepLast: step.keepLast })).toBe(gone.length);
        break;
      }
      case "snapshot":
        await shop.snapshot({ mode: step.who === 0 ? "consistent" : "per_component" });
        snapshot = copyOf(model);
        break;
      case "restore":
        if (!snapshot) {
          await expect(shop.restore()).rejects.toMatchObject({ code: "not_found" });
          break;
        }
        await shop.restore();
        model = restored(snapshot, model);
        break;
      case "crash":
        // It is simply gone, with all that it had in memory; another one takes its place.
        processes[step.who as 0 | 1] = open();
        break;
    }
    await expectSame(processes[1 - step.who]!, model); // seen from the other process
  }
  await Promise.all(processes.map((shop) => shop.close()));
}

/** Everything up to the position counts as seen; what is still there of it stays. */
function restored(snapshot: Model, now: Model): Model {
  const position = positionOf(snapshot);
  const kept = [...now.rows].filter(([, { status, offset }]) => status === "done" && offset <= position);
  const again = [...snapshot.rows].filter(([, { status, offset }]) => status !== "done" || offset > position);
  return { ...copyOf(snapshot), rows: new Map([...kept, ...again]), prunedTo: position };
}

async function expectSame(shop: System, model: Model): Promise<void> {
  const component = shop.component("c");
  const port = component.port("p");
  const row = ([id, { offset, attempts }]: [string, Row]) => ({ id, offset, attempts });
  const selectFields = ({ id, offset, attempts }: { id: string; offset: number; attempts: number }) => ({ id, offset, attempts });
  expect((await component.get("applied")) ?? {}).toEqual(Object.fromEntries(model.applied));
  expect((await port.pending()).map(selectFields)).toEqual(withStatus(model, "pending").map(row));
  expect((await port.deadLetters()).map(selectFields)).toEqual(withStatus(model, "dead").map(row));
  const { position, highest, prunedTo } = await port.position();
  expect({ position, highest, prunedTo }).toEqual({
    position: positionOf(model),
    highest: Math.max(-1, ...model.known),
    prunedTo: model.prunedTo,
  });
}
