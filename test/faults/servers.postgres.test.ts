import { once } from "node:events";
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { ownCluster } from "../setup/postgres.ts";
import { counts } from "./processes.ts";
import { serveOverHttp, writeUntilDeath } from "./server-writers.ts";
import { storedIds } from "./stored-ids.ts";

it("keeps every checkpoint that cairn serve acknowledged when PostgreSQL and then the server are killed", {
  timeout: 3_600_000,
}, async () => {
  const cluster = await ownCluster();
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "cairn-servers-")));
  const home = join(folder, "home");
  const project = join(folder, "project");
  mkdirSync(join(project, ".git"), { recursive: true });
  const storage = { storage: cluster.url, dataDir: join(home, ".cairn"), embedder: [] };
  try {
    const setUp = await open(storage);
    const { key } = await setUp.keys.create({ label: "writers", access: "write", projects: [project] });
    await setUp.close();
    const acknowledged: string[] = [];
    const rounds = counts({ short: 2, soak: 40 });
    for (let round = 0; round < rounds; round++) {
      const server = await serveOverHttp(key, { home, project, env: { CAIRN_STORAGE: cluster.url } });
      const end = once(server.child, "close");
      const writers = writeUntilDeath([server], 8);
      await writers.reached(1 + ((round * 37) % 60));
      await cluster.kill();
      await sleep(round % 3 === 0 ? 0 : 100); // some saves fail without the database, others are cut off by the second kill
      server.child.kill("SIGKILL");
      await end;
      await writers.done;
      acknowledged.push(...writers.acknowledged);
      await cluster.start();
      const cairn = await open(storage);
      const stored = await storedIds(cairn, project);
      await cairn.close();
      expect(acknowledged.filter((id) => !stored.has(id))).toEqual([]);
    }
    expect(acknowledged.length).toBeGreaterThanOrEqual(rounds);
  } finally {
    await cluster.destroy();
    rmSync(folder, { recursive: true, force: true });
  }
});
