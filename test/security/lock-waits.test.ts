import { cpSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, it } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import { projectDatabaseName } from "../../src/model/ids.ts";
import { LIMITS } from "../../src/model/limits.ts";
import { openRunStore } from "../../src/open/open-run-store.ts";
import { operations } from "../../src/operations/list.ts";
import { waitLimitMs, withoutTimeLimit, withTimeLimit } from "../../src/scheduling/calls.ts";
import { loadEngine } from "../../src/stores/sqlite/driver/engine.ts";
import { api } from "../http/api.ts";
import { makeProject, type Place } from "../migrate/place.ts";
import { runCheckpoint } from "../support/run-checkpoint.ts";
import { callAll, type Held, unlike503 } from "./locked-calls.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-locks-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let count = 0;
const project = "/locked";

async function filled(): Promise<{ cairn: Cairn; files: Record<Held, string>; dataDir: string }> {
  const dataDir = join(folder, String(count++));
  const stateDir = join(dataDir, "state");
  await makeProject({ dataDir, stateDir } as Place, project, 3);
  const runs = await openRunStore({ storage: "sqlite", path: join(dataDir, "runs.db") });
  await runs.save(runCheckpoint());
  await runs.close();
  const cairn = await open({ dataDir, stateDir, embedder: [] });
  const shop = cairn.systems.open("shop", { maxAttempts: 1 });
  const fail = () => {
    throw new Error("It does not work.");
  };
  await shop.component("till").port("orders").receive({ id: "m", offset: 0 }, fail);
  await shop.close();
  await cairn.close();
  return atPlace(copyOf(dataDir));
}

/** A copy that no connection of this process has ever opened: the engine of Node 20 keeps closed ones until they are collected as garbage. */
function copyOf(dataDir: string): string {
  const copy = join(folder, `copy-${count++}`);
  cpSync(dataDir, copy, { recursive: true });
  return copy;
}

async function atPlace(dataDir: string): Promise<{ cairn: Cairn; files: Record<Held, string>; dataDir: string }> {
  const stateDir = join(dataDir, "state");
  const projectFile = join(dataDir, "projects", `${projectDatabaseName(project)}.db`);
  const files = { project: projectFile, runs: join(dataDir, "runs.db"), system: join(stateDir, "checkpoints", "shop.db") };
  return { cairn: await open({ dataDir, stateDir, embedder: [] }), files, dataDir };
}

async function lock(path: string, sql: string): Promise<() => void> {
  const { DatabaseSync } = await loadEngine();
  const connection = new DatabaseSync(path, { timeout: 5_000 });
  connection.exec(sql);
  return () => connection.close();
}

describe("a caller who makes Cairn wait for a SQLite lock", () => {
  it.each<Held>(["project", "runs", "system"])(
    "gets 503 with Retry-After from every operation while the whole file is held: %s",
    async (held) => {
      const { cairn, files } = await filled();
      const release = await lock(files[held], "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
      const answers = await callAll(cairn, held, project);
      expect(unlike503(answers)).toEqual([]);
      release();
      await cairn.close();
    },
  );

  it("gets 503 from writes and answers from reads while the write lock is held", async () => {
    const { cairn, files } = await filled();
    const release = await lock(files.project, "BEGIN IMMEDIATE");
    const answers = await callAll(cairn, "project", project);
    const reads = ["checkpoint_list", "checkpoint_get", "checkpoint_search", "knowledge_list", "code_stats", "embeddings_list"];
    for (const name of reads) expect(answers.get(name)?.status, name).toBe(200);
    const writes = ["checkpoint_save", "checkpoint_update", "checkpoint_delete", "knowledge_save"];
    expect(unlike503(new Map([...answers].filter(([name]) => writes.includes(name))))).toEqual([]);
    expect(answers.get("checkpoint_save")!.body.error.message).toMatch(
      /Another process has held the write lock on .* for [34](\.\d)? s\. Nothing was stored\./,
    );
    release();
    const saved = await cairn.checkpoints.save({ projectPath: project, summary: "Now" });
    const { checkpoints } = await cairn.checkpoints.list({ projectPath: project });
    expect(checkpoints.map(({ summary }) => summary)).not.toContain("Later"); // refused means not stored
    expect(checkpoints.map(({ id }) => id)).toContain(saved.id);
    await cairn.close();
  });

  it("gets 503 while another process holds the file of the keys", async () => {
    const { cairn, dataDir } = await filled();
    await cairn.keys.create({ label: "first", access: "read", projects: "all" });
    const path = join(dataDir, "keys.json.lock");
    mkdirSync(dataDir, { recursive: true });
    writeFileSync(path, "");
    const http = await api({ cairn, operations: operations.map((one) => ({ ...one, limits: { ...one.limits, timeoutMs: 1_500 } })) });
    const keep = setInterval(() => utimesSync(path, new Date(), new Date()), 200); // its holder is alive
    const answer = await http.call("POST", "/v1/key/create", { label: "x", access: "read", projects: ["/p"] });
    clearInterval(keep);
    expect(unlike503(new Map([["key_create", answer]]))).toEqual([]);
    rmSync(path);
    await cairn.close();
  });
});

describe("the time that a call may wait", () => {
  it("ends before every operation's limit", async () => {
    for (const { name, limits } of operations)
      await withTimeLimit(limits.timeoutMs, async () => {
        expect(waitLimitMs(), name).toBeLessThanOrEqual(Math.min(LIMITS.lockWaitMs, limits.timeoutMs - 500));
      });
    expect(waitLimitMs()).toBe(LIMITS.lockWaitMs);
  });

  it("does not bind background work that starts while its call is still open", async () => {
    await withTimeLimit(1_000, async () => {
      expect(waitLimitMs()).toBeLessThan(1_000);
      expect(await withoutTimeLimit(async () => waitLimitMs())).toBe(LIMITS.lockWaitMs);
    });
  });

  it("shrinks while the call runs, and does not bind work that outlives the call", async () => {
    let afterCall: Promise<number> | undefined;
    await withTimeLimit(1_000, async () => {
      const before = waitLimitMs();
      await sleep(50);
      expect(waitLimitMs()).toBeLessThan(before);
      afterCall = sleep(20).then(() => waitLimitMs());
    });
    expect(await afterCall).toBe(LIMITS.lockWaitMs);
  });
});
