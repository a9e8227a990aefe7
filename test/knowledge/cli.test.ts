import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { stage } from "../cli/stage.ts";

let s: ReturnType<typeof stage>;
const env = { CAIRN_EMBEDDER_KIND: "none" };
const cairn = (...argv: string[]) => s.cairn(["knowledge", ...argv], { env });
const json = async (...argv: string[]) => JSON.parse((await cairn(...argv, "--json")).stdout);
beforeEach(() => {
  s = stage();
  writeFileSync(join(s.project, "faq.csv"), "id,question,answer\n1,How?,So.\n2,Why?,Because.\n");
});
afterEach(() => s.clear());

it("imports a file by its path, under its name, and again without change", async () => {
  expect(await json("import", "faq.csv")).toMatchObject({ added: 2, unchanged: 0, dry_run: false });
  expect(await json("list", "--source", "faq.csv")).toMatchObject({ total: 2 });
  expect(await json("list", "--scope", "shared")).toMatchObject({ total: 0 });
  expect((await cairn("import", "faq.csv", "--dry-run")).stdout).toMatch(/Would import: 0 new, 0 changed, 0 removed, 2 unchanged/);
});

it("reads what is imported from the pipe too, with its source", async () => {
  const piped = (...argv: string[]) => s.cairn(["knowledge", "import", "-", ...argv], { env, stdin: '[{"question":"q","answer":"a"}]' });
  expect((await piped("--source", "pipe")).stdout).toMatch(/1 new/);
  expect(await piped()).toMatchObject({ code: 2, stderr: expect.stringContaining("source") });
});

it("measures a labelled file", async () => {
  writeFileSync(join(s.project, "labelled.csv"), "query,id\nhow,1\nwhy,2\nnothing,2\n");
  const { validation } = await json("import", "faq.csv", "--validate", "labelled.csv");
  expect(validation).toMatchObject({ questions: 3, top_1: 2 / 3, missed: [{ query: "nothing", expected: "2" }] });
});

it("names the line that is wrong, and imports nothing", async () => {
  writeFileSync(join(s.project, "bad.csv"), "id,question,answer\n1,How?,So.\n2,,Because.\n");
  expect(await cairn("import", "bad.csv")).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/line 3: question is missing.*Nothing was imported/),
  });
  expect(await json("list")).toMatchObject({ total: 0 });
  writeFileSync(join(s.project, "latin.csv"), Buffer.from([0x69, 0x64, 0x0a, 0xe9, 0x0a]));
  expect(await cairn("import", "latin.csv")).toMatchObject({ code: 2, stderr: expect.stringContaining("not UTF-8") });
  expect(await cairn("import", "nowhere.csv")).toMatchObject({ code: 2, stderr: expect.stringContaining("cannot be read") });
});

it("saves, finds, judges and deletes", async () => {
  const { id } = await json("save", "How do we release?", "Push a tag.", "--category", "ops");
  expect((await json("search", "release")).results[0].knowledge.id).toBe(id);
  expect(await json("feedback", id, "--success")).toMatchObject({ usage_count: 1, successes: 1 });
  expect(await json("feedback", id, "--no-success")).toMatchObject({ usage_count: 2, successes: 1, success_rate: 0.5 });
  expect((await cairn("search", "release")).stdout).toMatch(/How do we release\?\n {2}Push a tag\./);
  expect(await json("delete", id)).toMatchObject({ deleted: true });
});
