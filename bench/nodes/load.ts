import { type Bench, median, quantile } from "../frame.ts";
import { createDatabase } from "./database.ts";
import { startServers } from "./servers.ts";

/** Clients that call at the same time. */
const CLIENTS = 16;
/** Projects that the clients use in turn. */
const PROJECTS = 10;

/** Measures a mix of saves, searches, lists and reads over all nodes in turn, with an index batch now and then. */
export async function measureLoad(bench: Bench, nodes: number, calls: number): Promise<void> {
  bench.log(`load: ${nodes} nodes`);
  const database = await createDatabase(bench);
  const servers = await startServers(bench, database.url, nodes);
  const project = (n: number) => `/bench/${n % PROJECTS}`;
  for (let n = 0; n < PROJECTS; n++) await servers.call("/v1/checkpoint/save", { project_path: project(n), summary: "Started the work" });
  const once = async (n: number): Promise<void> => {
    const project_path = project(Math.floor(n / 5));
    if (n % 100 === 99)
      return void (await servers.call("/index", {
        project_path,
        files: [{ path: "src/a.ts", content: `export const version = ${n};\n` }],
      }));
    if (n % 5 === 0) return void (await servers.call("/v1/checkpoint/search", { project_path, query: "parser of the configuration" }));
    if (n % 5 === 1) return void (await servers.call("/v1/checkpoint/list", { project_path, limit: 10 }));
    const saved = await servers.call("/v1/checkpoint/save", { project_path, summary: `Parser step ${n} done, lexer next` });
    if (n % 5 === 2) await servers.call("/v1/checkpoint/get", { project_path, id: saved.id });
  };
  const run = async (count: number): Promise<number[]> => {
    const ms: number[] = [];
    let next = 0;
    const client = async () => {
      while (next < count) {
        const start = performance.now();
        await once(next++);
        ms.push(performance.now() - start);
      }
    };
    await Promise.all(Array.from({ length: CLIENTS }, client));
    return ms;
  };
  await run(Math.ceil(calls / 5)); // warm-up
  const watch = database.watch();
  const refusedBefore = servers.refusals();
  const cpuBefore = servers.cpuMs();
  const start = performance.now();
  const ms = await run(calls);
  const seconds = (performance.now() - start) / 1_000;
  const cpu = servers.cpuMs() - cpuBefore;
  const { connectionsMax, cpuMs } = await watch.stop();
  bench.record({ name: `refusals_${nodes}`, value: servers.refusals() - refusedBefore, unit: "" });
  await servers.stop();
  // One call in five reads a record after it has saved it.
  const made = calls * 1.2;
  bench.record({ name: `calls_per_s_${nodes}`, value: made / seconds, unit: "/s" });
  bench.record({ name: `cpu_ms_per_call_${nodes}`, value: cpu / made, unit: "ms" });
  bench.record({ name: `postgres_cpu_ms_per_call_${nodes}`, value: cpuMs / made, unit: "ms" });
  bench.record({ name: `call_p50_ms_${nodes}`, value: median(ms), unit: "ms" });
  bench.record({ name: `call_p99_ms_${nodes}`, value: quantile(ms, 0.99), unit: "ms" });
  bench.record({ name: nodes === 3 ? "connections_per_node" : `connections_${nodes}`, value: connectionsMax / nodes, unit: "" });
}
