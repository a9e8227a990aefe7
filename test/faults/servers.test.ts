import { once } from "node:events";
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { projectDatabaseName } from "../../src/model/ids.ts";
import { checkFile } from "../../src/stores/sqlite/driver/damage.ts";
import { counts } from "./processes.ts";
import { serveOverHttp, serveOverStdio, type WritingServer, writeUntilDeath } from "./server-writers.ts";
import { storedIds } from "./stored-ids.ts";

const rounds = counts({ short: 4, soak: 200 });
let folder: string;
let home: string;
let project: string;
let dataDir: string;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "cairn-servers-")));
  home = join(folder, "home");
  project = join(folder, "project");
  dataDir = join(home, ".cairn");
  mkdirSync(home);
  mkdirSync(join(project, ".git"), { recursive: true });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Starts servers, kills them during saves, and checks every acknowledged save, repeatedly on the same files. */
async function killInRounds(start: () => Promise<readonly WritingServer[]>, each: number): Promise<void> {
  const acknowledged: string[] = [];
  for (let round = 0; round < rounds; round++) {
    const servers = await start();
    const ends = servers.map(({ child }) => once(child, "close"));
    const writers = writeUntilDeath(servers, each);
    await writers.reached(1 + ((round * 37) % 60));
    for (const { child } of servers) child.kill("SIGKILL");
    await Promise.all(ends);
    await writers.done;
    acknowledged.push(...writers.acknowledged);
    const cairn = await open({ dataDir, embedder: [] });
    const stored = await storedIds(cairn, project);
    await cairn.close();
    expect(acknowledged.filter((id) => !stored.has(id))).toEqual([]);
  }
  expect(acknowledged.length).toBeGreaterThanOrEqual(rounds);
  const file = join(dataDir, "projects", `${projectDatabaseName(project)}.db`);
  expect(await checkFile(file)).toMatchObject({ problems: [], damaged: [], stale: [] });
}

describe("a server killed with kill -9 while eight writers save", () => {
  it("keeps every checkpoint that cairn serve acknowledged", { timeout: 3_600_000 }, async () => {
    const cairn = await open({ dataDir, embedder: [] });
    const { key } = await cairn.keys.create({ label: "writers", access: "write", projects: [project] });
    await cairn.close();
    await killInRounds(async () => [await serveOverHttp(key, { home, project })], 8);
  });

  it("keeps every checkpoint that two cairn mcp processes acknowledged", { timeout: 3_600_000 }, async () => {
    await killInRounds(() => Promise.all([0, 1].map(() => serveOverStdio({ home, project }))), 4);
  });
});
