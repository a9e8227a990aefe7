// What a system does in the crash tests: used by the process that dies and by the test that looks at what it left.

/** Fails once for one message, so that there is something to try again. */
export async function effect(state, { offset, data, attempt }) {
  const sum = (await state.get("sum")) ?? 0;
  const times = (await state.get("times")) ?? {};
  state.set("sum", sum + data);
  state.set("times", { ...times, [offset]: (times[offset] ?? 0) + 1 });
  if (offset === 2 && attempt === 1) throw new Error("not yet");
}

export const dataOf = (offset) => 10 ** offset;
export const LAST = { till: 6, stock: 1 };

/** Messages in and out of order, a failure, retries, retention, snapshots and a restore. Says what is durable as soon as it is. */
export async function scenario(shop, say = () => {}) {
  const receive = async (component, offset) => {
    const port = shop.component(component).port("in");
    const { outcome } = await port.receive({ id: `m${offset}`, offset, data: dataOf(offset) }, effect);
    say({ component, offset, outcome });
  };
  const snapshot = async (mode) => say({ snapshot: (await shop.snapshot({ mode })).id });
  await Promise.all([receive("till", 1), receive("till", 0), receive("stock", 0)]);
  await receive("till", 2);
  await snapshot("consistent");
  await Promise.all([receive("till", 5), receive("till", 3), receive("till", 3)]);
  await shop.component("till").port("in").work(effect);
  await shop.prune({ keepLast: 1 });
  await Promise.all([receive("till", 4), receive("stock", 1)]);
  await snapshot("per_component");
  await shop.restore(); // to the same state, so that what was said stays true
  await receive("till", 6);
}
