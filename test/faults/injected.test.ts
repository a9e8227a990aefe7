import { cpSync, existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { openRunStore } from "../../src/runs.ts";
import { checkFile } from "../../src/stores/sqlite/driver/damage.ts";
import { sqliteStorage } from "../../src/stores/sqlite/storage.ts";
import { system } from "../../src/systems.ts";
import { expectSoundComponent } from "../systems/crash-checks.ts";
import { type FaultMode, faultShim } from "./fault-shim.ts";
import { counts } from "./processes.ts";

const shim = faultShim();
const project = "/home/me/app";
const MODES = ["EIO", "ENOSPC", "torn", "torn-kill", "power-cut"] as const;

type Said = Readonly<Record<string, unknown>>;
type Check = (folder: string, said: readonly Said[], mode: FaultMode) => Promise<void>;

/** Opens the files that the process left and checks for every acknowledged write. */
const CHECKS: Record<"create" | "saves" | "index" | "runs" | "inbox", Check> = {
  create: (folder, said, mode) => CHECKS.saves(folder, said, mode),

  async saves(folder, said) {
    const cairn = await open({ dataDir: folder, embedder: [] });
    const stored = new Map((await cairn.checkpoints.list({ projectPath: project, limit: 100 })).checkpoints.map((each) => [each.id, each]));
    const wanted = new Map(said.filter(({ id }) => id).map(({ id, summary }) => [id as string, summary]));
    // An update that was not acknowledged may be durable.
    for (const [id, summary] of wanted) expect(summary === "first" ? ["first", "changed"] : [summary]).toContain(stored.get(id)?.summary);
    await cairn.close();
  },

  async index(folder, said, mode) {
    await CHECKS.saves(folder, said, mode);
    const storage = sqliteStorage({ dataDir: folder, now: () => new Date().toISOString() });
    const code = (await storage.find(project))?.code;
    await code?.reconcile();
    const texts = await Promise.all(((await code?.files()) ?? []).map(async ({ path }) => (await code!.chunksOf(path))[0]!.text));
    const rounds = new Set(texts.map((text) => Number(/_round(\d+)/.exec(text)?.[1])));
    expect(rounds.size).toBeLessThan(2); // a batch is visible completely or not at all
    const acknowledged = said.reduce((last, { round }) => Math.max(last, Number(round ?? 0)), 0);
    // A power cut may lose the newest index commits: an index run restores them.
    if (mode !== "power-cut" && acknowledged > 0) expect([...rounds][0]).toBeGreaterThanOrEqual(acknowledged);
    if (code) expect(await code.orphans()).toEqual({ rows: 0, terms: 0, vectors: 0 });
    await storage.close();
  },

  async runs(folder, said) {
    const store = await openRunStore({ storage: "sqlite", path: join(folder, "runs.db") });
    for (const { runId, nodeId, state } of said)
      if (nodeId) expect(Buffer.from((await store.load(runId as string, nodeId as string)).state).toString()).toBe(state);
    await store.close();
  },

  async inbox(folder, said) {
    const storage = { storage: "sqlite", stateDir: folder } as const;
    const shop = system({ systemId: "shop", storage, snapshots: { keep: 1, everyMs: 3_600_000 } });
    const times = { till: await expectSoundComponent(shop, "till"), stock: await expectSoundComponent(shop, "stock") };
    for (const { component, offset, outcome } of said)
      if (component && outcome !== "failed") expect(times[component as "till" | "stock"]).toHaveProperty(String(offset), 1);
    const snapshot = said.find((line) => line.snapshot)?.snapshot as string | undefined;
    if (snapshot) expect(await shop.verify({ snapshotId: snapshot, level: "full" })).toMatchObject([{ good: true }]);
    await shop.close();
  },
};

const WORKLOADS = Object.keys(CHECKS) as (keyof typeof CHECKS)[];

describe.each(WORKLOADS)("a process that writes %s while the n-th file operation fails", (kind) => {
  const script = join(import.meta.dirname, "workload.mjs");
  const template = join(shim.folder, `${kind}-template`);
  beforeAll(async () => {
    mkdirSync(template);
    if (kind === "create") return;
    const { ended, errors } = await shim.run({ args: [script, kind, template, "only-create"], path: template, nth: 0, mode: "EIO" });
    expect(ended, errors).toBe(0);
  });

  const perform = async (nth: number, mode: FaultMode) => {
    const folder = join(shim.folder, `${kind}-${mode}-${nth}`);
    cpSync(template, folder, { recursive: true });
    const run = await shim.run({ args: [script, kind, folder], path: folder, nth, mode });
    return { ...run, folder, said: run.lines.map((line) => JSON.parse(line) as Said) };
  };

  it.each(MODES)("loses nothing acknowledged and leaves sound files (%s)", { timeout: 3_600_000 }, async (mode) => {
    const clean = await perform(0, mode);
    expect(clean.said.filter(({ error }) => error)).toEqual([]);
    expect(clean.operations).toBeGreaterThan(10);
    const all = Array.from({ length: clean.operations }, (_, index) => index + 1);
    const every = Math.ceil(all.length / 3);
    // Creating an empty database takes hundreds of operations, most of them similar.
    const soak = kind === "create" ? all.filter((nth) => nth % 8 === 0) : all;
    const chosen = counts({ short: all.filter((nth) => nth % every === Math.floor(every / 2)), soak });
    let met = 0;
    const inTurn = async () => {
      for (let nth = chosen.shift(); nth !== undefined; nth = chosen.shift()) {
        const { folder, said, ended, errors } = await perform(nth, mode);
        const where = `${mode} at operation ${nth}: ${errors}`;
        if (ended === "SIGKILL") expect(mode, where).toMatch(/kill|power/);
        else expect(ended, where).toBe(0);
        const failures = said.filter(({ error }) => error);
        if (failures.length > 0 || ended === "SIGKILL") met++;
        // Every failure has a documented code; errors of the engine are never passed through.
        for (const { error, message } of failures) expect(error, `${where} ${message}`).toBe("unavailable");
        await CHECKS[kind](folder, said, mode).catch((error: Error) => {
          throw new Error(`${where}\n${JSON.stringify(said)}`, { cause: error });
        });
        for (const file of databases(folder)) expect(await checkFile(file), where).toMatchObject({ problems: [], damaged: [], stale: [] });
        rmSync(folder, { recursive: true });
      }
    };
    await Promise.all([inTurn(), inTurn()]);
    expect(met).toBeGreaterThan(0);
  });
});

function databases(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".db"))
    .map((name) => join(folder, name))
    .filter((path) => existsSync(path));
}
