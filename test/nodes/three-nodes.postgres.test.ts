import { mkdtempSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { counts } from "../faults/processes.ts";
import { type Pooler, startPooler } from "../setup/pgbouncer.ts";
import { type OwnCluster, ownCluster, testDatabase } from "../setup/postgres.ts";
import { removeFolder } from "../support/processes.ts";
import { startTeam, type Team } from "./processes.ts";
import { roundRobin } from "./round-robin.ts";
import { type TeamClient, teamClient } from "./team-client.ts";
import { startWorkload } from "./workload.ts";

const NODES = 3;
/** The long form also restarts PostgreSQL, and the nodes reach it through PgBouncer. */
const soak = counts({ short: false, soak: true });
const KILLS = counts({ short: 4, soak: 60 });
/** Acknowledged rounds of calls between two kills. */
const ROUNDS_BETWEEN = 16;

it("loses, doubles and refuses nothing while nodes behind a balancer are killed, and revokes keys on every node", {
  timeout: 3_600_000,
}, async () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "cairn-nodes-")));
  const cleanup: (() => Promise<unknown>)[] = [() => removeFolder(folder)];
  try {
    const { url, cluster, pooler } = await startDatabase(cleanup);
    const storage = { storage: url, dataDir: join(folder, "setup"), embedder: { kind: "none" } } as const;
    const key = await createKey(storage);
    const team = await startTeam({ storage: pooler?.through(url) ?? url, folder, nodes: NODES, workers: 2 });
    cleanup.push(() => team.close());
    const balancer = await roundRobin(team.nodes);
    cleanup.push(() => balancer.close());
    const client = teamClient({ url: balancer.url, key, databaseRestarts: cluster !== undefined });
    const workload = await startWorkload(client);

    for (let kill = 0; kill < KILLS; kill++) {
      const target = workload.acknowledged() + ROUNDS_BETWEEN;
      while (workload.acknowledged() < target) await Promise.race([sleep(20), workload.failed]);
      await Promise.race([disturb(kill, team, cluster), workload.failed]);
    }
    await workload.stop();

    await expectRevocationEverywhere(team.nodes, client, balancer.url);
    for (const answered of balancer.answered) expect(answered).toBeGreaterThan(0);
    const cairn = await open(storage);
    cleanup.push(() => cairn.close());
    await workload.check(cairn);
  } finally {
    for (const work of cleanup.reverse()) await work();
  }
});

/** Creates a key through the balancer, revokes it, and calls every node a second later. */
async function expectRevocationEverywhere(nodes: readonly string[], admin: TeamClient, url: string): Promise<void> {
  const created = await admin.post("/v1/key/create", { label: "guest", access: "write", projects: ["/srv/guest"] });
  const statusOn = async (node: string) => {
    const response = await fetch(`${node}/v1/checkpoint/list`, {
      method: "POST",
      headers: { authorization: `Bearer ${created.key}`, "content-type": "application/json" },
      body: JSON.stringify({ project_path: "/srv/guest" }),
    });
    await response.arrayBuffer();
    return response.status;
  };
  expect(await Promise.all(nodes.map(statusOn))).toEqual(Array(NODES).fill(200));
  await admin.delete(`/v1/key/${created.id}`);
  await sleep(1_000);
  expect(await Promise.all(nodes.map(statusOn))).toEqual(Array(NODES).fill(401));
  const guest = teamClient({ url, key: created.key as string, databaseRestarts: false });
  for (const era of ["2025-11-25", "2026-07-28"] as const) await expect(guest.mcp(era)).rejects.toThrow(/401|unauthorized/i);
}

async function createKey(options: Parameters<typeof open>[0]): Promise<string> {
  const cairn = await open(options);
  try {
    return (await cairn.keys.create({ label: "team", access: "admin", projects: "all" })).key;
  } finally {
    await cairn.close();
  }
}

async function startDatabase(cleanup: (() => Promise<unknown>)[]): Promise<{ url: string; cluster?: OwnCluster; pooler?: Pooler }> {
  if (!soak) {
    const database = await testDatabase();
    cleanup.push(() => database.drop());
    return { url: database.url };
  }
  const cluster = await ownCluster();
  cleanup.push(() => cluster.destroy());
  const pooler = await startPooler(cluster.url, { default_pool_size: 20 });
  cleanup.push(() => pooler.stop());
  return { url: cluster.url, cluster, pooler };
}

/** Kills a node, and sometimes a worker too. In a soak, sometimes also stops or kills PostgreSQL. */
async function disturb(kill: number, team: Team, cluster: OwnCluster | undefined): Promise<void> {
  const restartDatabase = async () => {
    if (!cluster || kill % 4 !== 3) return;
    await (kill % 8 === 3 ? cluster.stop() : cluster.kill());
    await sleep(500);
    await cluster.start();
  };
  await Promise.all([team.restartNode(kill % NODES), kill % 2 === 1 ? team.replaceWorker() : undefined, restartDatabase()]);
}
