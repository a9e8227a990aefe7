import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { createServer, connect as dial } from "node:net";
import { join } from "node:path";
import pg from "pg";
import { CairnSaver } from "../src/adapters/langgraph/index.ts";
import { encodeState, openRunStore } from "../src/runs.ts";
import { type Bench, median, root } from "./frame.ts";
import { cpuInTurns, type Saver, stateOf, threadOf } from "./runs-support.ts";

/** Measures puts into PostgreSQL: round trips to the server, CPU and time. */
export async function measurePostgres(bench: Bench): Promise<void> {
  const server = execFileSync(join(root, "scripts", "postgres.sh"), ["acquire", String(process.pid)], { encoding: "utf8" }).trim();
  const name = `cairn_bench_${randomBytes(4).toString("hex")}`;
  await query(server, `CREATE DATABASE ${name}`);
  bench.defer(() => query(server, `DROP DATABASE ${name} WITH (FORCE)`));
  const counter = await countingProxy(server, name);
  bench.defer(() => counter.close());

  const peer = (await bench.peer("langgraph")) as { postgresSaver(url: string): Promise<Saver & { end(): Promise<void> }> };
  const theirs = await peer.postgresSaver(counter.url);
  const saver = new CairnSaver({ storage: "postgres", url: counter.url, poolMax: 2 });
  const store = await openRunStore({ storage: "postgres", url: counter.url, poolMax: 2 });
  bench.defer(() => theirs.end());
  bench.defer(() => saver.close());
  bench.defer(() => store.close());
  const first = { nodeId: "__start__", state: encodeState({}) };
  const { fence } = await store.start({ runId: "bench", graph: "bench", fingerprint: "", owner: "bench", leaseMs: 3_600_000, first });

  const state = stateOf(2_000);
  const theirThread = threadOf(theirs, state, "t");
  const ourThread = threadOf(saver, state, "t");
  let step = 0;
  const save = () => store.save({ runId: "bench", nodeId: "n", nextNode: "n", step: ++step, state: encodeState(state) }, { fence });
  const candidates = { theirs: theirThread.put, saver: ourThread.put, store: save };
  for (const put of Object.values(candidates)) for (let i = 0; i < 20; i++) await put();

  const trips: Record<string, number> = {};
  for (const [who, put] of Object.entries(candidates)) {
    const before = counter.trips();
    for (let i = 0; i < 50; i++) await put();
    trips[who] = (counter.trips() - before) / 50;
  }
  bench.record({ name: "langgraph_pg_put_round_trips", value: trips.theirs!, unit: "" });
  bench.record({ name: "saver_pg_put_round_trips", value: trips.saver!, unit: "" });
  bench.record({ name: "pg_put_round_trips", value: trips.store!, unit: "" });
  const times = await bench.times(candidates, { rounds: 200 });
  bench.record({ name: "pg_put_us", value: median(times.store!), unit: "µs", samples: times.store! });
  bench.record({ name: "langgraph_pg_put_us", value: median(times.theirs!), unit: "µs", samples: times.theirs! });
  bench.record({ name: "pg_put_ratio", value: median(times.store!) / median(times.theirs!), unit: "×" });
  bench.record({ name: "saver_pg_put_ratio", value: median(times.saver!) / median(times.theirs!), unit: "×" });
  const cpu = await cpuInTurns(candidates, { calls: 200, atOnce: 1 });
  bench.record({ name: "pg_put_cpu_ratio", value: median(cpu.store!) / median(cpu.theirs!), unit: "×" });
}

async function query(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(sql);
  await client.end();
}

/** Proxies a connection and counts its round trips: the client sends, the server answers. */
async function countingProxy(server: string, database: string): Promise<{ url: string; trips(): number; close(): void }> {
  const target = new URL(server);
  let turns = 0;
  const proxy = createServer((client) => {
    const upstream = dial(Number(target.port || 5432), target.hostname);
    let speaking = false;
    client.on("data", (data) => {
      speaking = true;
      upstream.write(data);
    });
    upstream.on("data", (data) => {
      if (speaking) turns++;
      speaking = false;
      client.write(data);
    });
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      one.on("error", () => other.destroy());
      one.on("close", () => other.destroy());
    }
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const url = new URL(server);
  url.host = `127.0.0.1:${(proxy.address() as { port: number }).port}`;
  url.pathname = `/${database}`;
  return { url: url.href, trips: () => turns, close: () => void proxy.close() };
}
