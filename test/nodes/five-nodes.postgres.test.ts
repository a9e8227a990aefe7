import { mkdtempSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { ownCluster } from "../setup/postgres.ts";
import { removeFolder } from "../support/processes.ts";
import { startTeam } from "./processes.ts";

const NODES = 5;
/** Calls at the same time on each node: five times its connections for calls. */
const CLIENTS_PER_NODE = 40;
const CALLS_PER_CLIENT = 4;
/** Projects that the clients use in turn. */
const PROJECTS = 5;
const CONNECTIONS_PER_NODE = 12;

it("serves calls and index batches on five nodes with max_connections = 100 without a 503", { timeout: 1_800_000 }, async () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "cairn-five-")));
  const cleanup: (() => Promise<unknown>)[] = [() => removeFolder(folder)];
  try {
    const cluster = await ownCluster();
    cleanup.push(() => cluster.destroy());
    await query(cluster.url, "ALTER SYSTEM SET max_connections = 100");
    await cluster.stop();
    await cluster.start();
    const cairn = await open({ storage: cluster.url, dataDir: join(folder, "setup"), embedder: { kind: "none" } });
    const { key } = await cairn.keys.create({ label: "team", access: "admin", projects: "all" });
    for (let n = 0; n < PROJECTS; n++) await cairn.checkpoints.save({ projectPath: `/srv/${n}`, summary: "Started" });
    await cairn.close();
    const team = await startTeam({ storage: cluster.url, folder, nodes: NODES, workers: 0 });
    cleanup.push(() => team.close());

    const statuses = new Map<number, number>();
    const refusals: string[] = [];
    const post = async (url: string, body: object) => {
      const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
      const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
      const text = await response.text();
      if (!response.ok) refusals.push(`${response.status} ${text}`);
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
    };
    const client = async (node: string, who: number) => {
      const project_path = `/srv/${who % PROJECTS}`;
      for (let call = 0; call < CALLS_PER_CLIENT; call++) {
        if (who % 8 === 0)
          await post(`${node}/index`, { project_path, files: [{ path: `src/f${who}.ts`, content: `const n = ${call};\n` }] });
        else if (call % 2 === 0) await post(`${node}/v1/checkpoint/save`, { project_path, summary: `Client ${who} saves ${call}` });
        else await post(`${node}/v1/checkpoint/search`, { project_path, query: "saves" });
      }
    };
    const connections = watchConnections(cluster.url);
    await Promise.all(team.nodes.flatMap((node) => Array.from({ length: CLIENTS_PER_NODE }, (_, who) => client(node, who))));
    const most = await connections.stop();
    expect(refusals).toEqual([]);
    expect([...statuses.keys()].sort()).toEqual([200, 202]);
    expect(most).toBeGreaterThan(NODES);
    expect(most).toBeLessThanOrEqual(NODES * CONNECTIONS_PER_NODE);
  } finally {
    for (const work of cleanup.reverse()) await work();
  }
});

/** Samples the connections of all nodes until it is stopped, and returns their maximum. */
function watchConnections(url: string): { stop(): Promise<number> } {
  let watching = true;
  const sampling = (async () => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    let most = 0;
    do {
      const { rows } = await client.query("SELECT count(*)::int AS open FROM pg_stat_activity WHERE application_name = 'cairn'");
      most = Math.max(most, rows[0].open);
      await sleep(20);
    } while (watching);
    await client.end();
    return most;
  })();
  return {
    stop() {
      watching = false;
      return sampling;
    },
  };
}

async function query(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(sql);
  await client.end();
}
