import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { open } from "../src/index.ts";
import { bareSave, emptyHttp, emptyMcp } from "./edges/floors.ts";
import { type Bench, type Benchmark, median, quantile, root } from "./frame.ts";

/** The two most frequent calls of an agent, through one surface. */
interface Surface {
  save(summary: string): Promise<string>;
  get(id: string): Promise<void>;
}

const ROUNDS = 300;

/**
 * Measures what each surface adds to a save and a get: the same calls through the library, MCP over stdio and HTTP, in turns, each on its
 * own SQLite files. The floor of a get is the library and an empty call on the same transport; that of a save, a bare transaction.
 */
export default {
  summary: "checkpoint_save and checkpoint_get through each surface",
  async run(bench) {
    const surfaces: Record<string, Surface> = { library: await library(bench), mcp: await mcp(bench), http: await http(bench) };
    const ids: Record<string, string> = {};
    const perSurface = (call: (surface: Surface, name: string) => unknown) =>
      Object.fromEntries(Object.entries(surfaces).map(([name, surface]) => [name, () => call(surface, name)]));

    const { bare, ...saves } = await bench.times(
      {
        ...perSurface(async (surface, name) => {
          ids[name] = await surface.save(`Parser done, lexer next ${randomUUID()}`);
        }),
        bare: await bareSave(bench),
      },
      { rounds: ROUNDS },
    );
    const {
      emptyMcp: mcpFloor,
      emptyHttp: httpFloor,
      ...gets
    } = await bench.times(
      { ...perSurface((surface, name) => surface.get(ids[name]!)), emptyMcp: await emptyMcp(bench), emptyHttp: await emptyHttp(bench) },
      { rounds: ROUNDS },
    );
    for (const [verb, times] of Object.entries({ save: saves, get: gets })) report(bench, verb, times);
    bench.record({ name: "save_floor_us", value: median(bare!), unit: "µs", samples: bare! });
    bench.record({ name: "save_ratio_to_floor", value: median(saves.library!) / median(bare!), unit: "×" });
    for (const [surface, empty] of Object.entries({ mcp: mcpFloor!, http: httpFloor! })) {
      const floor = median(gets.library!) + median(empty);
      bench.record({ name: `empty_${surface}_us`, value: median(empty), unit: "µs", samples: empty });
      bench.record({ name: `get_${surface}_ratio_to_floor`, value: median(gets[surface]!) / floor, unit: "×" });
    }
  },
} satisfies Benchmark;

function report(bench: Bench, verb: string, times: Record<string, number[]>): void {
  for (const [surface, samples] of Object.entries(times)) {
    const against = surface === "library" ? {} : { against: `${verb}_library_us` };
    bench.record({ name: `${verb}_${surface}_us`, value: median(samples), unit: "µs", samples, ...against });
    bench.record({ name: `${verb}_${surface}_p99_us`, value: quantile(samples, 0.99), unit: "µs" });
    const meanUs = samples.reduce((sum, us) => sum + us, 0) / samples.length;
    bench.record({ name: `${verb}_${surface}_per_s`, value: 1_000_000 / meanUs, unit: "calls/s" });
  }
}

async function library(bench: Bench): Promise<Surface> {
  const cairn = await open({ dataDir: bench.scratch(), embedder: { kind: "none" } });
  bench.defer(() => cairn.close());
  const projectPath = "/bench/library";
  return {
    save: async (summary) => (await cairn.checkpoints.save({ projectPath, summary, tags: ["bench"] })).id,
    get: async (id) => void (await cairn.checkpoints.get({ projectPath, id })),
  };
}

const main = join(root, "dist", "bundle", "main.cjs");
const environment = (dataDir: string) => ({
  PATH: process.env.PATH ?? "",
  HOME: dataDir,
  CAIRN_DATA_DIR: dataDir,
  CAIRN_EMBEDDER_KIND: "none",
});

/** Starts `cairn mcp` as a child process, as an agent's client does. */
async function mcp(bench: Bench): Promise<Surface> {
  const project = bench.scratch();
  const client = new Client({ name: "bench", version: "1" });
  const args = [main, "mcp", "--project", project];
  await client.connect(new StdioClientTransport({ command: process.execPath, args, env: environment(project), stderr: "ignore" }));
  bench.defer(() => client.close());
  const call = async (name: string, input: Record<string, unknown>) => {
    const answer = await client.callTool({ name, arguments: input });
    if (answer.isError) throw new Error(`${name} failed over MCP: ${JSON.stringify(answer.content)}`);
    return answer.structuredContent as { id: string };
  };
  return {
    save: async (summary) => (await call("checkpoint_save", { summary, tags: ["bench"] })).id,
    get: async (id) => void (await call("checkpoint_get", { id })),
  };
}

/** Starts `cairn serve` as a child process and calls it over one keep-alive connection. */
async function http(bench: Bench): Promise<Surface> {
  const project = bench.scratch();
  const args = [main, "serve", "--port", "0", "--json", "--project", project];
  const server = spawn(process.execPath, args, { env: environment(project), stdio: ["ignore", "pipe", "ignore"] });
  const ended = once(server, "close");
  bench.defer(async () => {
    server.kill("SIGTERM");
    await ended;
  });
  const [line] = await once(createInterface(server.stdout), "line");
  const { url, token_file } = JSON.parse(line);
  const headers = { authorization: `Bearer ${readFileSync(token_file, "utf8").trim()}`, "content-type": "application/json" };
  const call = async (verb: string, input: Record<string, unknown>) => {
    const body = JSON.stringify({ project_path: project, ...input });
    const answer = await fetch(`${url}/v1/checkpoint/${verb}`, { method: "POST", headers, body });
    if (!answer.ok) throw new Error(`${verb} failed over HTTP: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as { id: string };
  };
  return {
    save: async (summary) => (await call("save", { summary, tags: ["bench"] })).id,
    get: async (id) => void (await call("get", { id })),
  };
}
