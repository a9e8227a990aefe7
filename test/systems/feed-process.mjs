// A process that sends messages to a system in an order of its own, several at once, until all are there. Runs from dist/.
import { writeSync } from "node:fs";
import { system } from "../../dist/systems.js";

const { storage, systemId, count } = JSON.parse(process.argv[2]);
const shop = system({ systemId, storage, snapshots: { everyMs: 50, keep: 3 } });

const effect = async (state, { offset, data }) => {
  state.set("sum", ((await state.get("sum")) ?? 0) + data);
  state.set(`times ${offset}`, ((await state.get(`times ${offset}`)) ?? 0) + 1);
};

const left = Array.from({ length: count }, (_, offset) => offset).sort(() => Math.random() - 0.5);
async function send() {
  for (let offset = left.pop(); offset !== undefined; offset = left.pop()) {
    const port = shop.component(offset % 2 ? "odd" : "even").port("in");
    const { outcome } = await port.receive({ id: `m${offset}`, offset: offset >> 1, data: offset }, effect);
    writeSync(1, `${JSON.stringify({ offset, outcome })}\n`);
  }
}
await Promise.all(Array.from({ length: 5 }, send));
await shop.close();
