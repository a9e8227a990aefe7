import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import type { MigrateInput, Which } from "../../src/migrate/service.ts";
import { projectDatabaseName, sha256Hex } from "../../src/model/ids.ts";
import { openRunStore } from "../../src/open/open-run-store.ts";
import { withTimeLimit } from "../../src/scheduling/calls.ts";
import { system } from "../../src/systems.ts";
import { stage } from "../cli/stage.ts";
import { counts } from "../faults/processes.ts";
import { api } from "../http/api.ts";
import { startHttp } from "../mcp/connections.ts";
import { migrator } from "../migrate/migrator.ts";
import { makeProject, type Place, places, projectNamed } from "../migrate/place.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { killProcess } from "../support/processes.ts";
import { runCheckpoint } from "../support/run-checkpoint.ts";

let database: TestDatabase;
const place = places();
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

const opened = ({ dataDir, stateDir }: Place) => open({ dataDir, stateDir, embedder: [] });
const ABANDONED = { code: "unavailable", retryAfterMs: 60_000, details: { abandoned: true } };

interface Writer {
  readonly which: Which;
  /** Selects the database on the command line. */
  readonly flags: string;
  write(): Promise<unknown>;
}

/** Fills one database of each kind. Returns a write for each store. */
async function writersOf(where: Place, cairn: Cairn, project: string): Promise<Record<string, Writer>> {
  await makeProject(where, project, 3);
  const note = { kind: "faq", question: "How?", answer: "So." } as const;
  await cairn.knowledge.save({ ...note, scope: "shared" });
  const runs = await openRunStore({ storage: "sqlite", path: join(where.dataDir, "runs.db") });
  const step = (n: number) => runCheckpoint({ nodeId: `n${n}`, step: n });
  await runs.save(step(1));
  const id = sha256Hex(project).slice(0, 12);
  const shop = system({ systemId: id, storage: cairn.systems.storage, snapshots: { everyMs: 0 } });
  const orders = shop.component("till").port("orders");
  await orders.receive({ id: "m0", offset: 0 }, () => {});
  const own = { which: projectNamed(project), flags: `--project ${project}` };
  let count = 1;
  return {
    checkpoints: { ...own, write: () => cairn.checkpoints.save({ projectPath: project, summary: "Later" }) },
    knowledge: { ...own, write: () => cairn.knowledge.save({ ...note, projectPath: project }) },
    // The index does not migrate, so a removal may find nothing to write: each write adds a file.
    code: {
      ...own,
      write: () => cairn.code.indexBatch({ projectPath: project, files: [{ path: `note-${++count}.txt`, content: "A line of text.\n" }] }),
    },
    shared: {
      which: { kind: "shared", id: "shared" },
      flags: "--scope shared",
      write: () => cairn.knowledge.save({ ...note, scope: "shared" }),
    },
    runs: { which: { kind: "runs", id: "runs" }, flags: "--runs", write: () => runs.save(step(++count)) },
    systems: {
      which: { kind: "system", id },
      flags: `--system ${id}`,
      write: () => orders.receive({ id: `m${++count}`, offset: count }, () => {}),
    },
  };
}

describe("a migration that was killed", () => {
  it("makes every store report the command at once, in both directions, and the doctor too", { timeout: 900_000 }, async () => {
    for (const direction of counts({ short: ["up", "down"], soak: ["up", "down", "rollback"] })) {
      const where = place();
      const server = await testDatabase(); // each direction migrates the shared database and the runs
      const cairn = await opened(where);
      const writers = await writersOf(where, cairn, `/fence/${direction}`);
      const databases = new Map(Object.values(writers).map(({ which, flags }) => [flags, which]));
      for (const [flags, which] of databases) {
        if (direction !== "up") await where.migrations.migrate({ to: server.url, which });
        const input: MigrateInput =
          direction === "up" ? { to: server.url, which } : direction === "down" ? { to: "sqlite", which } : { rollback: true, which };
        expect((await migrator(where, input, "fenced")).finished).toBe(false);
        for (const [name, writer] of Object.entries(writers).filter(([, one]) => one.flags === flags)) {
          const failed = await writer.write().catch((error: unknown) => error);
          expect(failed, `${direction} ${name}`).toMatchObject(ABANDONED);
          const { message } = failed as Error;
          expect(message).toContain(`cairn migrate ${flags}`);
          expect(message).toContain(`cairn migrate ${flags} --rollback`);
          expect(message).not.toContain(new URL(server.url).password || "no password at all");
        }
        const report = await cairn.doctor.examine({ quick: true });
        expect(report.healthy).toBe(false);
        const finding = report.findings.find(({ command }) => command === `cairn migrate ${flags}`);
        expect(finding, flags).toMatchObject({ check: "migrations", severity: "problem" });
        // What the message names works: without a target, it goes where it was going.
        await where.migrations.migrate({ which });
        for (const writer of Object.values(writers).filter((one) => one.flags === flags)) await writer.write();
      }
      expect((await cairn.doctor.examine({ quick: true })).findings.filter(({ check }) => check === "migrations")).toEqual([]);
      await cairn.close();
      await server.drop();
    }
  });

  it("is reported at every point at which it can die", { timeout: 900_000 }, async () => {
    for (const [input, points] of [
      [{ to: database.url }, ["fenced", "recorded fenced", "recorded copied", "recorded verified", "archived", "target opened"]],
      [{ to: "sqlite" }, ["fenced", "recorded copied", "archived", "placed"]],
    ] as const)
      for (const point of points) {
        const where = place();
        const project = `/fence/${input.to === "sqlite" ? "down" : "up"}/${point.replace(" ", "-")}`;
        await makeProject(where, project, 3);
        const which = projectNamed(project);
        if (input.to === "sqlite") await where.migrations.migrate({ to: database.url, which });
        expect((await migrator(where, { ...input, which }, point)).finished, point).toBe(false);
        const cairn = await opened(where);
        await expect(cairn.checkpoints.save({ projectPath: project, summary: "Later" }), project).rejects.toMatchObject(ABANDONED);
        expect((await cairn.doctor.examine({ quick: true })).findings, project).toContainEqual(
          expect.objectContaining({ check: "migrations", severity: "problem", command: `cairn migrate --project ${project}` }),
        );
        await where.migrations.migrate({ which });
        await cairn.checkpoints.save({ projectPath: project, summary: "Later" });
        expect((await cairn.checkpoints.list({ projectPath: project })).total).toBe(4);
        await cairn.close();
      }
  });

  it("is reported by the command line, HTTP and MCP with what to do and when to retry", async () => {
    const { cairn, project, home, clear } = stage();
    const env = { CAIRN_DATA_DIR: join(home, "data"), CAIRN_STATE_DIR: join(home, "state"), CAIRN_EMBEDDER_KIND: "none" };
    const where = { dataDir: env.CAIRN_DATA_DIR, stateDir: env.CAIRN_STATE_DIR } as Place;
    await cairn(["checkpoint", "save", "Before"], { env });
    await migrator(where, { to: database.url, which: projectNamed(project) }, "fenced");
    const command = `cairn migrate --project ${project}`;

    const saved = await cairn(["checkpoint", "save", "Later"], { env });
    expect(saved).toMatchObject({ code: 9, stderr: expect.stringContaining(command) });
    const report = await cairn(["doctor", "--quick"], { env });
    expect(report.code).toBe(11);
    expect(report.stdout).toContain(command);

    const library = await opened(where);
    const http = await api({ cairn: library });
    const answer = await http.call("POST", "/v1/checkpoint/save", { project_path: project, summary: "Later" });
    expect(answer).toMatchObject({ status: 503, body: { error: { name: "UNAVAILABLE", message: expect.stringContaining(command) } } });
    expect(answer.headers.get("retry-after")).toBe("60");

    const mcp = await startHttp({ cairn: library });
    const client = await mcp.connect("2025-11-25");
    const result = await client.callTool({ name: "checkpoint_save", arguments: { project_path: project, summary: "Later" } });
    expect(result.isError).toBe(true);
    expect(JSON.stringify(result)).toContain(command);
    await mcp.close();

    const args = command.split(" ").slice(1);
    expect(await cairn(args, { env })).toMatchObject({ code: 0 });
    expect(await cairn(["checkpoint", "save", "Later"], { env })).toMatchObject({ code: 0 });
    expect((await cairn(["doctor", "--quick"], { env })).stdout).not.toContain("is unfinished");
    await library.close();
    clear();
  });

  it("is distinguished from one that runs: a stopped process still owns it, and a write waits no longer than its call", async () => {
    const where = place();
    const project = "/fence/stopped";
    await makeProject(where, project, 3);
    const input = { to: database.url, which: projectNamed(project) };
    const script = join(import.meta.dirname, "..", "migrate", "migrator.mjs");
    const { dataDir, stateDir } = where;
    const child = spawn(process.execPath, [script, JSON.stringify({ dataDir, stateDir, input, dieAt: "recorded fenced", stop: true })]);
    const record = join(dataDir, "projects", `${projectDatabaseName(project)}.db.migration`);
    await expect.poll(() => isStopped(child.pid!) && readFileSync(record, "utf8").includes('"fenced"')).toBe(true);
    const cairn = await opened(where);
    const save = () => cairn.checkpoints.save({ projectPath: project, summary: "Later" });
    await expect(withTimeLimit(1_000, save)).rejects.toMatchObject({
      code: "unavailable",
      retryAfterMs: 1_000,
      message: expect.stringContaining("is being migrated"),
    });
    const running = (await cairn.doctor.examine({ quick: true })).findings.filter(({ check }) => check === "migrations");
    expect(running).toMatchObject([{ severity: "note" }]);
    await killProcess(child);
    await expect(save()).rejects.toMatchObject(ABANDONED);
    await where.migrations.migrate({ rollback: true, which: input.which });
    await save();
    await cairn.close();
  });
});

function isStopped(pid: number): boolean {
  return readFileSync(`/proc/${pid}/stat`, "utf8").includes(") T ");
}
