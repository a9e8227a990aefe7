/** Payments that are processed exactly once, although their source repeats them. Run it with: npm run example -- inbox */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Effect, system } from "../src/systems.ts"; // in your own project: from "cairn-memory/systems"

interface Payment {
  readonly account: string;
  readonly cents: number;
}

/** Commits the balance and the receipt of this payment in one transaction. */
const book: Effect<Payment> = async (state, { data }) => {
  if (data.cents <= 0) throw new Error(`${data.cents} cents cannot be booked`);
  const balance = (await state.get<number>(data.account)) ?? 0;
  state.set(data.account, balance + data.cents);
};

const source: readonly { id: string; offset: number; data: Payment }[] = [
  { id: "pay-a", offset: 0, data: { account: "ada", cents: 1_000 } },
  { id: "pay-b", offset: 1, data: { account: "grace", cents: 250 } },
  { id: "pay-c", offset: 2, data: { account: "ada", cents: -1 } },
  { id: "pay-d", offset: 3, data: { account: "ada", cents: 500 } },
];

const stateDir = mkdtempSync(join(tmpdir(), "cairn-example-"));
const open = () => system({ systemId: "bank", storage: { storage: "sqlite", stateDir }, maxAttempts: 2 });

const monday = open();
const payments = monday.component("ledger").port<Payment>("payments");
for (const message of source.slice(0, 3)) console.log(message.id, (await payments.receive(message, book)).outcome);
const snapshot = await monday.snapshot();
await monday.close();

// The next process does not know the progress of the previous one, so its source repeats all messages, in any order.
const tuesday = open();
const ledger = tuesday.component("ledger");
const inbox = ledger.port<Payment>("payments");
console.log("the source continues after offset", (await inbox.position()).position);
for (const message of source.toReversed()) console.log(message.id, (await inbox.receive(message, book)).outcome);
assert.deepEqual([await ledger.get("ada"), await ledger.get("grace")], [1_500, 250]);

// A message that failed too often becomes a dead letter, with its reason, until it is requeued.
const [dead] = await inbox.deadLetters();
assert.equal(dead?.reason, "-1 cents cannot be booked");
await inbox.requeue([dead.id]);
const repaired = await inbox.work((state, message) => book(state, { ...message, data: { ...message.data, cents: 1 } }));
assert.deepEqual(repaired, { done: 1, failed: 0, dead: 0 });

// Restores Monday's snapshot: later messages are repeated and processed again.
const { snapshotId, ports } = await tuesday.restore();
assert.equal(snapshotId, snapshot.id);
for (const message of source.filter(({ offset }) => offset > ports[0]!.position)) await inbox.receive(message, book);
assert.equal(await ledger.get("ada"), 1_500);
console.log("balances", { ada: await ledger.get("ada"), grace: await ledger.get("grace") });
await tuesday.close();
rmSync(stateDir, { recursive: true });
