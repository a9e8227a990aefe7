import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { settingByKey } from "../../src/config/settings.ts";
import { open } from "../../src/index.ts";
import { END, graph, openRunStore } from "../../src/runs.ts";
import { openSystemStorage, system } from "../../src/systems.ts";

const URL_SECRET = "s3cretPassw0rd";
const MESSAGE = `cannot reach "postgres://app:${URL_SECRET}@db/app"\nafter: curl -u admin:${URL_SECRET} https://api.internal`;

const folders: string[] = [];
const folder = () => {
  folders.push(mkdtempSync(join(tmpdir(), "cairn-reasons-")));
  return folders.at(-1)!;
};
afterAll(() => {
  for (const path of folders) rmSync(path, { recursive: true, force: true });
});

const holds = (path: string, secret: string) =>
  readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .some((entry) => readFileSync(join(entry.parentPath, entry.name)).includes(secret));

const failing = () =>
  graph<{ note: string }>({ name: "deploy" })
    .node("connect", () => {
      throw new Error(MESSAGE);
    })
    .entry("connect")
    .edge("connect", END)
    .compile();

describe("an attacker who reads run and system files", () => {
  it.each(["sqlite", "file"] as const)("finds no secret in the failure reason of a run (%s)", async (kind) => {
    const path = folder();
    const store = await openRunStore(kind === "sqlite" ? { storage: kind, path: join(path, "runs.db") } : { storage: kind, folder: path });
    await expect(failing().run({ note: "plain" }, { store, runId: "r1" })).rejects.toThrow(URL_SECRET); // the program itself sees its error
    const note = (await store.getRun("r1"))!.note!;
    expect(note).toContain("[redacted:url-password]");
    expect(note).toContain("[redacted:command-password]");
    await store.close();
    expect(holds(path, URL_SECRET)).toBe(false);
  });

  it("finds no secret in the reason of a dead letter", async () => {
    const stateDir = folder();
    const shop = system({ systemId: "shop", storage: { storage: "sqlite", stateDir }, maxAttempts: 1 });
    const receipt = await shop
      .component("orders")
      .port("in")
      .receive({ id: "m1", offset: 0 }, () => {
        throw new Error(MESSAGE);
      });
    expect(receipt).toMatchObject({ outcome: "dead", reason: expect.stringContaining("[redacted:url-password]") });
    await shop.close();
    expect(holds(stateDir, URL_SECRET)).toBe(false);
  });
});

describe("states", () => {
  const state = { note: `PGPASSWORD=${URL_SECRET} psql`, db: { password: URL_SECRET }, list: new Map([["token", "plain"]]), count: 1 };
  const steps = () =>
    graph<typeof state>({ name: "keep" })
      .node("count", (given) => ({ ...given, count: given.count + 1 }))
      .entry("count")
      .edge("count", END)
      .compile();

  it("are stored as they are by default", async () => {
    const store = await openRunStore({ storage: "memory" });
    expect(await steps().run(state, { store })).toMatchObject({ state: { ...state, count: 2 } });
  });

  it("of runs are redacted when redaction.state is on, and a resumed run sees what a running one saw", async () => {
    const dataDir = folder();
    const cairn = await open({ dataDir, embedder: { kind: "none" }, redaction: { state: true } });
    const result = await steps().run(state, { store: cairn.runs.store, runId: "r1" });
    const clean = {
      note: "PGPASSWORD=[redacted:command-password] psql",
      db: { password: "[redacted:password]" },
      list: state.list,
      count: 2,
    };
    expect(result.state).toEqual(clean);
    expect(JSON.parse((await cairn.runs.get({ runId: "r1", includeState: true })).stateJson!)).toMatchObject({
      note: clean.note,
      db: clean.db,
    });
    await cairn.close();
    expect(holds(dataDir, URL_SECRET)).toBe(false);
  });

  it("and messages of systems are redacted when asked for, and each message still takes effect once", async () => {
    const stateDir = folder();
    const storage = await openSystemStorage({ storage: "sqlite", stateDir, redaction: { state: true } });
    const shop = system({ systemId: "shop", storage });
    const port = shop.component("orders").port<{ note: string }>("in");
    const seen: string[] = [];
    const effect: Parameters<typeof port.receive>[1] = async (memory, { data }) => {
      seen.push(data.note);
      if (seen.length === 1) throw new Error("not yet");
      memory.set("last", { password: URL_SECRET, count: ((await memory.get<{ count: number }>("last"))?.count ?? 0) + 1 });
    };
    const message = { id: "m1", offset: 0, data: { note: `mysql -u root -p${URL_SECRET}` } };
    expect((await port.receive(message, effect)).outcome).toBe("failed");
    expect(await port.work(effect)).toEqual({ done: 1, failed: 0, dead: 0 });
    expect((await port.receive(message, effect)).outcome).toBe("duplicate");
    expect(seen).toEqual(["mysql -u root -p[redacted:command-password]", "mysql -u root -p[redacted:command-password]"]);
    expect(await shop.component("orders").get("last")).toEqual({ password: "[redacted:password]", count: 1 });
    await shop.close();
    await storage.close();
    expect(holds(stateDir, URL_SECRET)).toBe(false);
  });

  it("cannot be switched by a project's own file", () => {
    expect(settingByKey.get("redaction.state")).toMatchObject({ fallback: false });
    expect(settingByKey.get("redaction.state")?.fromProject).not.toBe(true);
  });
});
