import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { stage } from "./stage.ts";

const { cairn, project, folder, clear } = stage();
const elsewhere = join(folder, "elsewhere");
mkdirSync(elsewhere);
const env = { CAIRN_EMBEDDER_KIND: "none" };
const json = async (...argv: string[]) => JSON.parse((await cairn([...argv, "--json"], { env })).stdout);
beforeAll(async () => {
  for (const summary of ["First", "Second, with ümlaut", "Third"])
    await cairn(["checkpoint", "save", summary, "--tags", "t", "--context", "branch=main"], { env });
});
afterAll(clear);

it("writes an export as JSON lines that only its owner may read", async () => {
  const file = join(folder, "out.jsonl");
  expect(await json("checkpoint", "export", file)).toEqual({ file, records: 3 });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const [header, ...records] = readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(header).toMatchObject({ cairn_export: 1, kind: "checkpoints", project_path: project });
  expect(records.map(({ summary }) => summary)).toEqual(["Third", "Second, with ümlaut", "First"]);
  expect(readdirSync(folder).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  const { stdout } = await cairn(["checkpoint", "export"], { env });
  expect(stdout.trim().split("\n").slice(1)).toEqual(readFileSync(file, "utf8").trim().split("\n").slice(1));
});

it("imports an export into another project, and again without changes", async () => {
  const file = join(folder, "out.jsonl");
  const other = ["--project", elsewhere];
  expect(await json("checkpoint", "import", file, ...other)).toEqual({ imported: 3, present: 0, failed: 0, problems: [] });
  expect(await json("checkpoint", "import", file, ...other)).toMatchObject({ imported: 0, present: 3 });
  const { checkpoints } = await json("checkpoint", "list", ...other);
  expect(checkpoints[1]).toMatchObject({
    summary: "Second, with ümlaut",
    context: { branch: "main" },
    tags: ["t"],
    project_path: elsewhere,
  });
});

it("reports the lines that failed and stores the others", async () => {
  const file = join(folder, "odd.jsonl");
  const good = (id: string) => JSON.stringify({ id, summary: "Good", created_at: "2026-01-01T00:00:00Z" });
  writeFileSync(file, `\uFEFF${good("x1")}\n\nnot json\n[1]\n{"id":"x2"}\n${good("x3")}\r\n"${"y".repeat(1_100_000)}"\n${good("x4")}`);
  const { stdout, code } = await cairn(["checkpoint", "import", file, "--json"], { env });
  const reported = JSON.parse(stdout);
  expect(reported).toMatchObject({ imported: 3, failed: 4 });
  expect(code).toBe(11);
  expect(reported.problems.map(({ line }: { line: number }) => line).sort()).toEqual([3, 4, 5, 7]);
});

it.each([
  [["checkpoint", "import"], 2, /<file> is missing/],
  [["checkpoint", "import", "nowhere.jsonl"], 3, /no file or folder/],
  [["checkpoint", "export", "nowhere/out.jsonl"], 3, /no file or folder/],
  [["checkpoint", "export", "--json"], 2, /needs a <file>/],
] as const)("refuses %s", async (argv, code, said) => {
  const outcome = await cairn(argv, { env });
  expect(outcome.stderr).toMatch(said);
  expect(outcome.code).toBe(code);
});

it("rejects an export of another kind, and reads standard input", async () => {
  const wrong = await cairn(["checkpoint", "import", "-"], { env, stdin: '{"cairn_export":1,"kind":"knowledge"}\n' });
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringMatching(/not an export of checkpoints/)]);
  const piped = await cairn(["checkpoint", "import", "-"], {
    env,
    stdin: '{"id":"p","summary":"Piped","created_at":"2026-01-01T00:00:00Z"}\n',
  });
  expect(piped.stdout).toMatch(/1 checkpoints imported/);
});
