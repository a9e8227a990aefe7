import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import pg from "pg";
import { type Effect, type System, type SystemStorageOptions, system } from "../src/systems.ts";
import { type Bench, type Benchmark, median, quantile, root } from "./frame.ts";

const ROUNDS = 5;
const MESSAGES = 2_000;

const benchmark: Benchmark = {
  summary:
    "durable exactly-once messages with their effect: producers that wait for each receipt, compared with one transaction per message",
  async run(bench) {
    const sqlite = (): SystemStorageOptions => ({ storage: "sqlite", stateDir: bench.scratch() });
    await measure(bench, "", sqlite(), { producers: 32, commitsPerSecond: 10_000 });
    await measure(bench, "budget_", sqlite(), { producers: 8 });
    await measureSlow(bench);
    await measure(bench, "pg_", await postgres(bench), { producers: 8 });
  },
};
export default benchmark;

/** The smallest effect that shows a lost or duplicated message. */
const count: Effect = async (state) => state.set("count", ((await state.get<number>("count")) ?? 0) + 1);

/** How many producers send at once, and the write budget; without one the default. */
interface Load {
  readonly producers: number;
  readonly commitsPerSecond?: number;
}

async function measure(bench: Bench, prefix: string, storage: SystemStorageOptions, { producers, ...budget }: Load): Promise<void> {
  const together = system({ systemId: "together", storage, snapshots: { everyMs: 0 }, ...budget });
  // The same work without group commit: each message is sent when the previous one is durable.
  const single = system({ systemId: "single", storage, snapshots: { everyMs: 0 }, commitsPerSecond: 100_000 });
  bench.defer(() => together.close());
  bench.defer(() => single.close());
  const rates: number[] = [];
  const singles: number[] = [];
  const waits: number[] = [];
  const offsets = { together: 0, single: 0 };
  for (let round = -1; round < ROUNDS; round++) {
    const { perSecond, waitsMs } = await produce(together, producers, MESSAGES, offsets.together);
    offsets.together += MESSAGES;
    const alone = await produce(single, 1, MESSAGES / 4, offsets.single);
    offsets.single += MESSAGES / 4;
    if (round < 0) continue; // warm-up
    rates.push(perSecond);
    singles.push(alone.perSecond);
    waits.push(...waitsMs);
  }
  await expectExact(together, offsets.together);
  await expectExact(single, offsets.single);
  bench.record({
    name: `${prefix}messages_per_s`,
    value: median(rates),
    unit: "/s",
    samples: rates,
    against: `${prefix}single_messages_per_s`,
  });
  bench.record({ name: `${prefix}single_messages_per_s`, value: median(singles), unit: "/s", samples: singles });
  bench.record({ name: `${prefix}ratio_to_single`, value: median(rates) / median(singles), unit: "×" });
  bench.record({ name: `${prefix}p50_ms`, value: median(waits), unit: "ms" });
  bench.record({ name: `${prefix}p95_ms`, value: quantile(waits, 0.95), unit: "ms" });
  const commits = (await together.overview())[0]!.version;
  bench.record({ name: `${prefix}messages_per_commit`, value: offsets.together / commits, unit: "" });
}

/** Measures the budget of the first design, one commit per second, with producers that do not wait for receipts. */
async function measureSlow(bench: Bench): Promise<void> {
  const slow = system({
    systemId: "slow",
    storage: { storage: "sqlite", stateDir: bench.scratch() },
    snapshots: { everyMs: 0 },
    commitsPerSecond: 1,
  });
  bench.defer(() => slow.close());
  const { perSecond } = await produce(slow, 1_500, 6_000, 0);
  await expectExact(slow, 6_000);
  const commits = (await slow.overview())[0]!.version;
  bench.record({ name: "slow_messages_per_s", value: perSecond, unit: "/s at 1 commit/s" });
  bench.record({ name: "slow_commits", value: commits, unit: "" });
}

/** Runs N producers. Each sends its next message when the previous one is durable. */
async function produce(
  target: System,
  producers: number,
  messages: number,
  from: number,
): Promise<{ perSecond: number; waitsMs: number[] }> {
  const port = target.component("counter").port("in");
  const waitsMs: number[] = [];
  let next = from;
  const start = performance.now();
  const producer = async () => {
    while (next < from + messages) {
      const offset = next++;
      const sent = performance.now();
      await port.receive({ id: `message-${offset}`, offset, data: { text: "something that happened", offset } }, count);
      waitsMs.push(performance.now() - sent);
    }
  };
  await Promise.all(Array.from({ length: producers }, producer));
  return { perSecond: (1_000 * messages) / (performance.now() - start), waitsMs };
}

/** Asserts that every message took effect exactly once. */
async function expectExact(target: System, messages: number): Promise<void> {
  const counted = await target.component("counter").get("count");
  const { position } = await target.component("counter").port("in").position();
  if (counted !== messages || position !== messages - 1)
    throw new Error(`${counted} effects and position ${position} for ${messages} messages`);
}

async function postgres(bench: Bench): Promise<SystemStorageOptions> {
  const server = execFileSync(join(root, "scripts", "postgres.sh"), ["acquire", String(process.pid)], { encoding: "utf8" }).trim();
  const name = `cairn_bench_${randomBytes(4).toString("hex")}`;
  await query(server, `CREATE DATABASE ${name}`);
  bench.defer(() => query(server, `DROP DATABASE ${name} WITH (FORCE)`));
  const url = new URL(server);
  url.pathname = `/${name}`;
  return { storage: "postgres", url: url.href, poolMax: 4 };
}

async function query(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(sql);
  await client.end();
}
