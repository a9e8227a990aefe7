import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { countHits, damage, FILES, indexFiles, openCairn, projectPath } from "./code-file.ts";

const which = { kind: "project", id: projectPath } as const;

it("backs up the code index only on request, and restores it with its project", async () => {
  const { cairn, file, codeFile, dataDir } = await openCairn();
  await cairn.checkpoints.save({ projectPath, summary: "Backed up" });
  await indexFiles(cairn);
  const without = await cairn.backups.create(which);
  expect(without.databases.map(({ kind }) => kind)).toEqual(["project"]);
  const whole = await cairn.backups.create(which, { withCode: true });
  expect(whole.databases.map(({ kind }) => kind)).toEqual(["project", "code"]);
  expect((await cairn.backups.create("all", { withCode: true })).databases.map(({ kind }) => kind)).toEqual(["project", "code"]);
  expect(await cairn.backups.verify({ id: whole.id, level: "full" })).toMatchObject({ sound: true });

  await cairn.close();
  const { cairn: again } = await openCairn(dataDir);
  for (const path of [file, codeFile]) rmSync(path);
  const restored = await again.backups.restore({ id: without.id, which });
  expect(restored.databases).toMatchObject([{ kind: "project", hasCodeIndex: false }]);
  expect(await countHits(again)).toBe(0);
  const both = await again.backups.restore({ id: whole.id, which, overwrite: true });
  expect(both.databases).toMatchObject([{ kind: "project", hasCodeIndex: true }, { kind: "code" }]);
  expect(await countHits(again)).toBeGreaterThan(0);
});

it("backs up checkpoints although the code index is damaged, and reports the failure", async () => {
  const { cairn, codeFile } = await openCairn();
  await cairn.checkpoints.save({ projectPath, summary: "Backed up" });
  await indexFiles(cairn);
  await damage(codeFile, 0, 100);
  const backup = await cairn.backups.create(which, { withCode: true });
  expect(backup.databases.map(({ kind }) => kind)).toEqual(["project"]);
  expect(backup.failed).toMatchObject([{ kind: "code" }]);
});

it("exports and imports the code index only on request", async () => {
  const { cairn, dataDir } = await openCairn();
  const { cairn: other, codeFile } = await openCairn();
  await cairn.checkpoints.save({ projectPath, summary: "Exported" });
  await indexFiles(cairn);
  const [plain, full] = [join(dataDir, "plain.db"), join(dataDir, "full.db")];
  await cairn.transfer.export({ projectPath, file: plain });
  expect(existsSync(join(dataDir, "plain.code.db"))).toBe(false);
  await cairn.transfer.export({ projectPath, file: full, withCode: true });
  expect(existsSync(join(dataDir, "full.code.db"))).toBe(true);

  expect(await other.transfer.import({ projectPath, file: plain })).toMatchObject({ checkpoints: { imported: 1 }, code: "not imported" });
  expect(existsSync(codeFile)).toBe(false);
  await expect(other.transfer.import({ projectPath, file: plain, withCode: true })).rejects.toThrow(/no code index.*cairn code index/);
  expect(await other.transfer.import({ projectPath, file: full, withCode: true })).toMatchObject({ code: "imported" });
  expect(await countHits(other)).toBeGreaterThan(0);
  expect(await other.transfer.import({ projectPath, file: full, withCode: true })).toMatchObject({ code: "present" });
  await expect(other.transfer.import({ projectPath: "/elsewhere", file: full, withCode: true })).rejects.toThrow(
    /code index of \/home\/me\/app/,
  );
});

it("checks both files, and never sets memory aside for damage in the code index", async () => {
  const { cairn, file, codeFile } = await openCairn();
  await cairn.checkpoints.save({ projectPath, summary: "Checked" });
  await indexFiles(cairn);
  expect(await cairn.databases.check({ projectPath })).toMatchObject({ state: "sound", codeIndex: { location: codeFile, problems: [] } });
  expect((await cairn.doctor.examine()).databases).toMatchObject([
    { kind: "project" },
    { kind: "code", id: projectPath, location: codeFile },
  ]);
  await damage(codeFile, 8_192, 400_000);
  const checked = await cairn.databases.check({ projectPath });
  expect(checked).toMatchObject({ state: "sound", location: file });
  expect(checked.codeIndex!.problems.length).toBeGreaterThan(0);
  await expect(cairn.databases.quarantine({ projectPath })).rejects.toThrow(/is not damaged/);
  const { healthy, findings } = await cairn.doctor.examine();
  expect(healthy).toBe(false);
  expect(findings).toContainEqual(
    expect.objectContaining({
      check: "integrity",
      subject: `code index of ${projectPath}`,
      message: expect.stringContaining("Checkpoints and knowledge are not affected"),
      command: `cairn code index --project ${projectPath}`,
    }),
  );
  const repaired = await cairn.doctor.examine({ repair: true });
  expect(repaired.repairs).toMatchObject([{ rebuilt: [expect.stringContaining("code index")] }]);
  expect(existsSync(codeFile)).toBe(false);
  expect((await indexFiles(cairn)).files.map(({ status }) => status)).toEqual(FILES.map(() => "indexed"));
  expect((await cairn.doctor.examine()).findings.filter(({ check }) => check === "integrity")).toEqual([]);
});
