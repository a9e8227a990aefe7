import { existsSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import type { MigratedDatabase } from "../../src/migrate/service.ts";
import { counts } from "../faults/processes.ts";
import { type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { migrator } from "./migrator.ts";
import { makeProject, type Place, places, projectFile, projectNamed } from "./place.ts";

let database: TestDatabase;
const place = places();
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

const project = (n: number, what: string) => `/crash/${what}/${n}`;
const digests = ({ databases }: { databases: readonly MigratedDatabase[] }) => databases[0]!.tables;

/** All of the project, wherever it is, seen through the library, which follows it. */
async function seen({ dataDir }: Place, projectPath: string): Promise<unknown[]> {
  const cairn = await open({ dataDir, embedder: [] });
  const { checkpoints } = await cairn.checkpoints.list({ projectPath, limit: 100 });
  const list = checkpoints.map(({ id, summary, tags }) => ({ id, summary, tags })).sort((a, b) => (a.id < b.id ? -1 : 1));
  const saved = await cairn.checkpoints.save({ projectPath, summary: "It can be written to." });
  await cairn.checkpoints.purge({ projectPath, id: saved.id });
  await cairn.close();
  return list;
}

/** The points at which to die: every one in a soak, else those where most is at stake. */
function pointsOf(lines: readonly string[], chosen: readonly string[]): number[] {
  const all = lines.map((_, index) => index + 1);
  return counts({ short: all.filter((point) => chosen.includes(lines[point - 1]!)), soak: all });
}

const TIMEOUT = counts({ short: 900_000, soak: 3_600_000 });

describe("a migration killed with kill -9", { timeout: TIMEOUT }, () => {
  it("at every write point loses and doubles nothing, and is finished or undone by the next run", async () => {
    const to = database.url;
    const trial = place();
    await makeProject(trial, project(0, "up"), 3);
    const { lines } = await migrator(trial, { to, which: projectNamed(project(0, "up")) });
    expect(lines).toEqual(
      expect.arrayContaining([
        "recorded fencing",
        "fenced",
        "target filled",
        "recorded verified",
        "archived",
        "target opened",
        "recorded migrated",
      ]),
    );
    expect(lines.length).toBeGreaterThan(20); // one line per table of checkpoints and knowledge, and per state

    for (const dieAt of pointsOf(lines, ["fenced", "before the commit", "archived", "target opened", "recorded migrated"])) {
      const where = place();
      const name = project(dieAt, "up");
      const which = projectNamed(name);
      await makeProject(where, name, 3);
      const before = digests(await where.migrations.migrate({ to, which, dryRun: true }));
      const point = `${dieAt} ${lines[dieAt - 1]}`;
      expect((await migrator(where, { to, which }, dieAt)).finished, point).toBe(false);
      const undone = dieAt % 2 === 0;
      // At that point the file is gone and PostgreSQL is not open yet: a call for all databases must find it too.
      const meant = lines[dieAt - 1] === "archived" ? "all" : which;
      const after = await where.migrations.migrate(undone ? { rollback: true, which: meant } : { to, which: meant });
      expect(after.databases[0]!.outcome, point).toBe(undone ? "rolled_back" : dieAt === lines.length ? "unchanged" : "migrated");
      expect(existsSync(projectFile(where, name)), point).toBe(undone);
      if (undone) expect(digests(await where.migrations.migrate({ to, which, dryRun: true })), point).toEqual(before);
      else expect(digests(after), point).toEqual(before);
      expect(await seen(where, name), point).toHaveLength(3);
    }
  });

  it("on its way back, by copy or by rollback, loses and doubles nothing either", async () => {
    for (const [what, input] of [
      ["rollback", { rollback: true }],
      ["down", { to: "sqlite" }],
    ] as const) {
      const trial = place();
      await makeProject(trial, project(0, what), 3);
      await trial.migrations.migrate({ to: database.url, which: projectNamed(project(0, what)) });
      const { lines } = await migrator(trial, { ...input, which: projectNamed(project(0, what)) });
      expect(lines).toEqual(
        expect.arrayContaining(["fenced", "target filled", "recorded verified", "archived", "placed", "record removed"]),
      );
      for (const dieAt of pointsOf(lines, what === "down" ? ["archived"] : ["archived", "placed"])) {
        const where = place();
        const name = project(dieAt, what);
        const which = projectNamed(name);
        await makeProject(where, name, 3);
        const before = digests(await where.migrations.migrate({ to: database.url, which }));
        const point = `${what} ${dieAt} ${lines[dieAt - 1]}`;
        expect((await migrator(where, { ...input, which }, dieAt)).finished, point).toBe(false);
        if (dieAt < lines.length) await where.migrations.migrate({ ...input, which });
        expect(existsSync(projectFile(where, name)), point).toBe(true);
        expect(existsSync(`${projectFile(where, name)}.migration`), point).toBe(false);
        expect(digests(await where.migrations.migrate({ to: `${database.url}?x=1`, which, dryRun: true })), point).toEqual(before);
        expect(await seen(where, name), point).toHaveLength(3);
      }
    }
  });

  it("on its way back can be sent back to PostgreSQL as long as that is the truth", async () => {
    const where = place();
    const name = project(0, "sent-back");
    const which = projectNamed(name);
    await makeProject(where, name, 3);
    await where.migrations.migrate({ to: database.url, which });
    const plan = await where.migrations.migrate({ to: "sqlite", which, dryRun: true });
    const points = counts({ short: [4], soak: [1, 2, 3, 4, 5, 8, 12, 20] });
    for (const dieAt of points) {
      expect((await migrator(where, { to: "sqlite", which }, dieAt)).finished, String(dieAt)).toBe(false);
      expect((await where.migrations.migrate({ rollback: true, which })).databases[0]!.outcome).toBe("rolled_back");
      expect(existsSync(projectFile(where, name))).toBe(false);
      expect(await seen(where, name)).toHaveLength(3);
      const again = await where.migrations.migrate({ to: "sqlite", which, dryRun: true });
      expect(digests(again)).toEqual(digests(plan));
    }
  });
});
