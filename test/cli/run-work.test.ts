import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = resolve(import.meta.dirname, "../..");
const main = join(root, "dist/bundle/main.cjs");
const folder = mkdtempSync(join(tmpdir(), "cairn-run-work-"));
const env = { ...process.env, CAIRN_DATA_DIR: join(folder, "data"), CAIRN_STATE_DIR: join(folder, "state"), NO_COLOR: "1" };
const cairn = (...args: readonly string[]) => spawnSync(process.execPath, [main, ...args], { cwd: folder, env, encoding: "utf8" });

const MODULE = `
import { setTimeout as sleep } from "node:timers/promises";
import { END, graph } from "cairn-memory/runs";
const build = (version) => graph({ name: "order", version })
  .node("price", async (state) => { await sleep(state.ms ?? 0); return { ...state, price: state.items * 7 }; })
  .edge("price", "ask")
  .node("ask", (state, { interrupt }) => ({ ...state, by: interrupt("Who pays?") }))
  .edge("ask", END)
  .entry("price")
  .compile();
export const order = build(process.env.ORDER_VERSION ?? "1");
export const systems = { shop: { till: { orders: async (state, message) => state.set("sum", ((await state.get("sum")) ?? 0) + message.data) } } };
`;

beforeAll(() => {
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(root, join(folder, "node_modules", "cairn-memory"));
  writeFileSync(join(folder, "order.mjs"), MODULE);
  writeFileSync(join(folder, "empty.mjs"), "export const nothing = 1;");
  writeFileSync(join(folder, "broken.mjs"), "import './missing.mjs';");
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function listening(): Promise<ChildProcess> {
  const child = spawn(process.execPath, [main, "run", "work", "order.mjs", "--json"], {
    cwd: folder,
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout!, "data");
  return child;
}

describe("cairn run work", () => {
  it("executes queued and answered runs of a module until nothing waits", () => {
    expect(cairn("run", "work", "order.mjs", "--until-idle").stdout).toContain("Working on order, shop.");
    expect(cairn("run", "enqueue", "order", '{"items": 2}', "--run-id", "o1").stdout).toContain("cd ");
    expect(cairn("run", "work", "order.mjs", "--until-idle").stdout).toMatch(/o1 {2}started[\s\S]*o1 {2}paused/);
    expect(cairn("run", "answer", "o1", "Ada").status).toBe(0);
    expect(cairn("run", "answer", "o1", "Bob")).toMatchObject({ status: 4, stderr: expect.stringContaining("was answered differently") });
    expect(cairn("run", "work", "order.mjs", "--until-idle").stdout).toMatch(/o1 {2}continues[\s\S]*o1 {2}completed/);
    expect(JSON.parse(cairn("run", "state", "o1", "--json").stdout).state_json).toBe('{"items":2,"price":14,"by":"Ada"}');
    expect(cairn("run", "graph", "o1").stdout).toContain("● price → ask");
  });

  it("lets the current step finish after SIGTERM and gives the run back", { timeout: 60_000 }, async () => {
    const child = await listening();
    cairn("run", "enqueue", "order", '{"items": 3, "ms": 1500}', "--run-id", "o2");
    let events = "";
    child.stdout!.on("data", (chunk) => {
      events += chunk;
      if (events.includes('"claimed"') && !child.killed) child.kill("SIGTERM");
    });
    const [code] = await once(child, "close");
    expect({ code, events }).toMatchObject({ code: 0, events: expect.stringContaining('"status":"queued"') });
    expect(JSON.parse(cairn("run", "get", "o2", "--json").stdout).run).toMatchObject({ status: "queued", last_sequence: 2 });
    expect(cairn("run", "work", "order.mjs", "--until-idle").stdout).toContain("o2  paused");
  });

  it("leaves runs of another version of the graph, and reports them", () => {
    cairn("run", "enqueue", "order", '{"items": 4}', "--run-id", "o3");
    const other = spawnSync(process.execPath, [main, "run", "work", "order.mjs", "--until-idle"], {
      cwd: folder,
      env: { ...env, ORDER_VERSION: "2" },
      encoding: "utf8",
    });
    expect(other.stderr).toContain("another version of the graph");
    expect(JSON.parse(cairn("run", "get", "o3", "--json").stdout).run.status).toBe("queued");
  });

  it("keeps the limits that the module exports with a graph", () => {
    const module = (limits: string) => `
      import { setTimeout as sleep } from "node:timers/promises";
      import { END, graph } from "cairn-memory/runs";
      let running = 0;
      export const parcel = graph({ name: "parcel" })
        .node("send", async (state) => {
          const most = ++running;
          await sleep(50);
          running--;
          return { ...state, most };
        })
        .edge("send", END).entry("send").compile();
      export const work = [{ graph: parcel, ${limits} }];`;
    writeFileSync(join(folder, "limited.mjs"), module("concurrency: 1"));
    cairn("run", "work", "limited.mjs", "--until-idle");
    for (const id of ["p1", "p2", "p3", "p4"]) cairn("run", "enqueue", "parcel", "{}", "--run-id", id);
    expect(cairn("run", "work", "limited.mjs", "--until-idle").stdout.match(/completed/g)).toHaveLength(4);
    for (const id of ["p1", "p2", "p3", "p4"]) expect(JSON.parse(cairn("run", "state", id, "--json").stdout).state_json).toBe('{"most":1}');
    writeFileSync(join(folder, "limited.mjs"), module("perSecond: -1"));
    expect(cairn("run", "work", "limited.mjs")).toMatchObject({ status: 2, stderr: expect.stringContaining("perSecond of the graph") });
  });

  it("finds graphs next to a graph, keeps nested limits, and refuses other keys", async () => {
    const { loadWork } = await import("../../src/cli/run-work/load-work.ts");
    const load = (name: string, exported: string) => {
      const build = (graph: string) => `graph({ name: "${graph}" }).node("a", (s) => s).edge("a", END).entry("a").compile()`;
      const head = `import { END, graph } from "cairn-memory/runs"; const order = ${build("order")}, refund = ${build("refund")};`;
      writeFileSync(join(folder, name), `${head} export default ${exported};`);
      return loadWork(name, folder);
    };
    const two = await load("two.mjs", "{ graph: order, refund }");
    expect(two.graphs.map(({ graph }) => graph.name)).toEqual(["order", "refund"]);
    const nested = await load("nested.mjs", "{ work: [{ graph: order, concurrency: 1 }] }");
    expect(nested.graphs).toMatchObject([{ graph: { name: "order" }, concurrency: 1 }]);
    await expect(load("misspelt.mjs", "{ graph: order, concurency: 1 }")).rejects.toThrow('"concurency" next to the graph "order"');
    await load("retry.mjs", "{ graph: order, retry: { attempts: 1.5 } }");
    expect(cairn("run", "work", "retry.mjs")).toMatchObject({ status: 2, stderr: expect.stringContaining("retry.attempts of the graph") });
  });

  it("drains the systems that the module exports", async () => {
    const { system } = await import("../../src/systems.ts");
    const shop = system({ systemId: "shop", storage: { storage: "sqlite", stateDir: env.CAIRN_STATE_DIR } });
    const port = shop.component("till").port<number>("orders");
    for (let i = 0; i < 5; i++) await port.receive({ id: `m${i}`, offset: i, data: i });
    expect(cairn("run", "work", "order.mjs", "--until-idle").stdout).toContain("shop/till/orders  5 done");
    expect(await shop.component("till").get("sum")).toBe(10);
    await shop.close();
  });

  it("explains what is wrong with a module", () => {
    expect(cairn("run", "work", "none.mjs").stderr).toContain("There is no module");
    expect(cairn("run", "work", "empty.mjs").stderr).toContain("exports no compiled graph");
    expect(cairn("run", "work", "broken.mjs").stderr).toContain("could not be imported");
  });
});
