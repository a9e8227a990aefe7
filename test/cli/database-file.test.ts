import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { stage } from "./stage.ts";

const { cairn, project, folder, clear } = stage();
const elsewhere = join(folder, "elsewhere");
mkdirSync(elsewhere);
const json = async (...argv: string[]) => JSON.parse((await cairn([...argv, "--json"])).stdout);
beforeAll(async () => {
  for (const summary of ["First", "Second"]) await cairn(["checkpoint", "save", summary, "--set", "embedder.kind=none"]);
});
afterAll(clear);

const NONE = ["--set", "embedder.kind=none"];

it("exports a project to one file and imports it under another path", async () => {
  const file = join(folder, "project.db");
  expect(await json("database", "export", file, ...NONE)).toEqual({ file, bytes: expect.any(Number) });
  const other = ["--project", elsewhere, ...NONE];
  expect(await json("database", "import", file, ...other)).toMatchObject({
    from: project,
    checkpoints: { imported: 2, present: 0, failed: 0 },
    knowledge: { imported: 0 },
  });
  const again = await cairn(["database", "import", file, ...other]);
  expect(again.stdout).toContain("checkpoints: 0 imported, 2 already present, 0 failed");
  expect((await json("checkpoint", "list", ...other)).checkpoints.map(({ summary }: { summary: string }) => summary)).toEqual([
    "Second",
    "First",
  ]);
});

it.each([
  [["database", "export"], 2, /<file> is missing/],
  [["database", "export", "../project.db"], 4, /already/],
  [["database", "import", "nowhere.db"], 3, /no file or folder/],
  [["database", "import", "../project.db", "--scope", "other"], 2, /scope/],
] as const)("refuses %s", async (argv, code, said) => {
  const outcome = await cairn([...argv, ...NONE]);
  expect(outcome.stderr).toMatch(said);
  expect(outcome.code).toBe(code);
});
