import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadEngine } from "../../src/stores/sqlite/driver/engine.ts";
import { dataFolder } from "../backups/folders.ts";

let at: ReturnType<typeof dataFolder>;
beforeEach(() => {
  at = dataFolder();
});
afterEach(() => at.clear());

describe("a trigger that is planted into one project's file", () => {
  it("neither hides the other projects nor goes unreported by the check and the doctor", async () => {
    const first = await at.open();
    await first.checkpoints.save({ projectPath: "/home/me/mine", summary: "Mine" });
    const folder = join(at.dataDir, "projects");
    const [mine] = readdirSync(folder).filter((name) => /^project_.*\.db$/.test(name));
    await first.checkpoints.save({ projectPath: "/home/me/planted", summary: "Planted" });
    await first.close();
    const planted = readdirSync(folder).find((name) => /^project_.*\.db$/.test(name) && name !== mine)!;
    const { DatabaseSync } = await loadEngine();
    const connection = new DatabaseSync(join(folder, planted));
    connection.exec("CREATE TRIGGER evil AFTER INSERT ON checkpoints BEGIN DELETE FROM checkpoints WHERE key = NEW.key; END");
    connection.close();

    const cairn = await at.open({ doctor: { freeDiskMinBytes: 0 } });
    await expect(cairn.checkpoints.save({ projectPath: "/home/me/planted", summary: "Lost?" })).rejects.toThrow(/did not make/);
    const { hits } = await cairn.checkpoints.searchAll({ query: "Mine", mayTouch: () => true });
    expect(hits.map(({ record }) => record.summary)).toEqual(["Mine"]);
    expect(await cairn.databases.check({ projectPath: "/home/me/planted" })).toMatchObject({
      state: "damaged",
      problems: [expect.stringContaining('holds "evil"')],
    });
    const { healthy, findings } = await cairn.doctor.examine();
    expect(healthy).toBe(false);
    expect(findings).toMatchObject([
      { check: "integrity", severity: "problem", subject: "project /home/me/planted", message: expect.stringContaining('holds "evil"') },
    ]);
  });
});
