import { afterEach, describe, expect, it } from "vitest";
import { open } from "../../src/open/open.ts";
import type { Cairn } from "../../src/operations/cairn.ts";
import { type Caller, invoke, LOCAL_CALLER } from "../../src/operations/invoke.ts";
import { operations } from "../../src/operations/list.ts";
import { estimateTokens } from "../../src/text/estimate-tokens.ts";
import { plantedSecrets } from "../redaction/planted.ts";
import { testEmbedder } from "../support/embedders.ts";

const project_path = "/home/someone/app";
const opened: Cairn[] = [];
afterEach(async () => {
  for (const cairn of opened.splice(0)) await cairn.close();
});

async function fresh(embedder = testEmbedder()) {
  let minute = 0;
  const now = () => new Date(Date.UTC(2026, 0, 1, 0, minute++)).toISOString();
  const cairn = await open({ storage: "memory", embedder: [embedder], now });
  opened.push(cairn);
  return { cairn, call: calling(cairn) };
}

const calling =
  (cairn: Cairn, caller: Caller = LOCAL_CALLER) =>
  // biome-ignore lint/suspicious/noExplicitAny: answers are looked at field by field
  (name: string, input: Record<string, unknown>): Promise<any> =>
    invoke(cairn, operations.find((one) => one.name === name)!, input, { caller });

describe("checkpoint_resume", () => {
  it("gives the newest or the one named, at each level", async () => {
    const { call } = await fresh();
    const first = await call("checkpoint_save", {
      project_path,
      summary: "Lexer done",
      description: "All green.",
      context: { branch: "lexer" },
      tags: ["a"],
    });
    await call("checkpoint_save", { project_path, summary: "Parser done", description: "Two red tests.", context: { branch: "parser" } });

    const summary = await call("checkpoint_resume", { project_path, level: "summary" });
    expect(summary.text).toMatch(/^# Parser done\nCheckpoint /);
    expect(summary.text).not.toMatch(/branch|red tests/);
    expect(summary.checkpoint).not.toHaveProperty("context");
    expect(summary.note).toMatch(/level "context"/);

    expect(await call("checkpoint_resume", { project_path })).toMatchObject({
      level: "full",
      checkpoint: { description: "Two red tests." },
      text: expect.stringContaining("Two red tests."),
    });
    const context = await call("checkpoint_resume", { project_path, level: "context" });
    expect(context).toMatchObject({
      level: "context",
      checkpoint: { context: { branch: "parser" } },
      note: expect.stringMatching(/level "full"/),
    });
    expect(context.text).toMatch(/branch: parser/);
    expect(context.checkpoint).not.toHaveProperty("description");

    const full = await call("checkpoint_resume", { project_path, level: "full", id: first.id });
    expect(full.checkpoint).toMatchObject({ id: first.id, description: "All green." });
    expect(full.text).toMatch(/Lexer done.*tags: a.*branch: lexer.*All green\./s);
    expect(full).not.toHaveProperty("note");
  });

  it("stays within its tokens and reports how to get the rest", async () => {
    const { call } = await fresh();
    await call("checkpoint_save", { project_path, summary: "Long", description: "many words ".repeat(900) });
    const cut = await call("checkpoint_resume", { project_path, level: "full", max_tokens: 300 });
    expect(estimateTokens(cut.text)).toBeLessThan(350);
    expect(cut.note).toMatch(/larger max_tokens/);
    const whole = await call("checkpoint_resume", { project_path, level: "full" });
    expect(whole.text).toContain("many words ".repeat(899));
  });

  it("says that there is nothing yet, and that an id is not there", async () => {
    const { call } = await fresh();
    await expect(call("checkpoint_resume", { project_path })).rejects.toMatchObject({
      code: "not_found",
      message: expect.stringMatching(/no checkpoint to resume/),
    });
    await expect(call("checkpoint_resume", { project_path, id: "x" })).rejects.toMatchObject({ code: "not_found" });
  });
});

describe("answers within a budget of tokens", () => {
  it("cut long descriptions first, then end the page, and nothing is out of reach", async () => {
    const { call } = await fresh();
    for (let index = 0; index < 12; index++)
      await call("checkpoint_save", { project_path, summary: `Step ${index}`, description: "long words here ".repeat(300) });
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await call("checkpoint_list", { project_path, limit: 12, max_tokens: 1_000, ...(cursor && { cursor }) });
      expect(estimateTokens(JSON.stringify(page))).toBeLessThan(1_300);
      if (page.next_cursor) expect(page.note).toMatch(/continue with next_cursor/);
      expect(page.checkpoints[0].description).toMatch(/cut; use checkpoint_get/);
      seen.push(...page.checkpoints.map(({ summary }: { summary: string }) => summary));
      cursor = page.next_cursor;
    } while (cursor);
    expect(seen).toEqual(Array.from({ length: 12 }, (_, index) => `Step ${11 - index}`));

    const found = await call("checkpoint_search", { project_path, query: "long words", top_k: 12, max_tokens: 1_000 });
    expect(estimateTokens(JSON.stringify(found))).toBeLessThan(1_800);
    expect(found.note).toMatch(/Limited to 1000 tokens: .* checkpoint_get/);
  });

  it("cut one record that is too long alone, and give it whole when asked", async () => {
    const { call } = await fresh();
    const context = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`key ${index}`, "value ".repeat(80)]));
    const { id } = await call("checkpoint_save", { project_path, summary: "Long", description: "word ".repeat(2_000), context });
    const cut = await call("checkpoint_get", { project_path, id, max_tokens: 500 });
    expect(estimateTokens(JSON.stringify(cut))).toBeLessThan(600);
    expect(cut.description).toMatch(/\[cut, with \d+ context pairs; use checkpoint_get\]/);
    expect(cut.note).toMatch(/larger max_tokens/);
    const whole = await call("checkpoint_get", { project_path, id, max_tokens: 100_000 });
    expect(whole.context).toEqual(context);
    expect(whole).not.toHaveProperty("note");
    // An edit of the shortened text would lose the rest.
    await expect(call("checkpoint_update", { project_path, id, description: cut.description })).rejects.toMatchObject({
      code: "invalid_input",
      message: expect.stringMatching(/^description: .* Read the whole text with checkpoint_get/),
    });
    expect(await call("checkpoint_update", { project_path, id, description: whole.description })).toMatchObject({ id });
  });
});

describe("checkpoint_search_all", () => {
  it("searches every project that the caller may see, and no other", async () => {
    const { cairn, call } = await fresh();
    for (const path of ["/one", "/two", "/three"])
      await call("checkpoint_save", { project_path: path, summary: `Certificates rotated in ${path}` });
    const all = await call("checkpoint_search_all", { query: "certificates rotated", top_k: 10 });
    expect(all).toMatchObject({ projects: 3, merged_by: "score" });
    expect(all.results).toHaveLength(3);
    const some = await calling(cairn, { access: "read", projects: ["/two"] })("checkpoint_search_all", { query: "certificates rotated" });
    expect(some.projects).toBe(1);
    expect(some.results.map(({ checkpoint }: { checkpoint: { project_path: string } }) => checkpoint.project_path)).toEqual(["/two"]);
  });

  it("merges by rank where projects have vectors of different models", async () => {
    const [one, two] = [testEmbedder({ model: "one" }), testEmbedder({ model: "two", dimension: 32 })];
    const cairn = await open({ storage: "memory", embedder: [one, two] });
    opened.push(cairn);
    const call = calling(cairn);
    for (const path of ["/one", "/two"])
      for (const what of ["cache", "index"]) await call("checkpoint_save", { project_path: path, summary: `Repaired the ${what}` });
    await call("embeddings_upgrade", { project_path: "/two", model: "two" });
    const { merged_by, results } = await call("checkpoint_search_all", { query: "repaired the cache", top_k: 4 });
    expect(merged_by).toBe("rank");
    expect(results.slice(0, 2).map(({ checkpoint }: { checkpoint: { summary: string } }) => checkpoint.summary)).toEqual([
      "Repaired the cache",
      "Repaired the cache",
    ]);
  });
});

describe("checkpoint_prune", () => {
  const titles = async (call: ReturnType<typeof calling>) =>
    (await call("checkpoint_list", { project_path, limit: 100 })).checkpoints.map(({ summary }: { summary: string }) => summary);

  it("deletes by age, by count and by both, and nothing on a dry run", async () => {
    const { cairn, call } = await fresh();
    for (let index = 0; index < 6; index++) await cairn.checkpoints.save({ projectPath: project_path, summary: `Step ${index}` });
    const at = (await cairn.checkpoints.list({ projectPath: project_path, limit: 6 })).checkpoints.map(({ createdAt }) => createdAt);
    const dry = await call("checkpoint_prune", { project_path, keep_last: 2, dry_run: true });
    expect(dry).toMatchObject({ matched: 4, deleted: 0, dry_run: true });
    expect(dry.examples[0]).toMatchObject({ summary: "Step 3" });
    expect(await titles(call)).toHaveLength(6);
    expect(await call("checkpoint_prune", { project_path, older_than: at[4], keep_last: 1 })).toMatchObject({ matched: 1, deleted: 1 });
    expect(await call("checkpoint_prune", { project_path, keep_last: 3 })).toMatchObject({ deleted: 2 });
    expect(await titles(call)).toEqual(["Step 5", "Step 4", "Step 3"]);
    expect(await call("checkpoint_prune", { project_path, older_than: "1h", keep_last: 10 })).toMatchObject({ deleted: 0 });
    expect(await call("checkpoint_prune", { project_path, older_than: "1h" })).toMatchObject({ deleted: 3 });
    expect(await titles(call)).toEqual([]);
  });

  it("deletes thousands in batches, and refuses to guess", async () => {
    const { cairn, call } = await fresh();
    for (let index = 0; index < 450; index++) await cairn.checkpoints.save({ projectPath: project_path, summary: `Step ${index}` });
    await expect(call("checkpoint_prune", { project_path })).rejects.toThrow(/set older_than, keep_last or both/);
    await expect(call("checkpoint_prune", { project_path, older_than: "soon" })).rejects.toThrow(/older_than: use a duration/);
    expect(await call("checkpoint_prune", { project_path, keep_last: 0 })).toMatchObject({ matched: 450, deleted: 450 });
    expect(await call("checkpoint_prune", { project_path: "/nowhere", keep_last: 0 })).toMatchObject({ matched: 0 });
  });
});

describe("export and import", () => {
  it("page by cursor, and an import may be repeated and goes to the named project", async () => {
    const { call } = await fresh();
    for (let index = 0; index < 7; index++)
      await call("checkpoint_save", {
        project_path,
        summary: `Step ${index}`,
        description: "D",
        context: { branch: "b" },
        tags: ["t", `n${index}`],
      });
    const records: Record<string, unknown>[] = [];
    let cursor: string | undefined;
    do {
      const page = await call("checkpoint_export", { project_path, limit: 3, ...(cursor && { cursor }) });
      records.push(...page.records);
      cursor = page.next_cursor;
    } while (cursor);
    expect(records).toHaveLength(7);
    const target = { project_path: "/other" };
    expect(await call("checkpoint_import", { ...target, records })).toMatchObject({ imported: 7, present: 0, problems: [] });
    expect(await call("checkpoint_import", { ...target, records })).toMatchObject({ imported: 0, present: 7 });
    const { records: copied } = await call("checkpoint_export", target);
    expect(copied).toEqual(records.map((record) => ({ ...record, project_path: "/other" })));
    const { results } = await call("checkpoint_search", { ...target, query: "Step 3", mode: "semantic" });
    expect(results[0].checkpoint.summary).toBe("Step 3");
  });

  it("refuse each bad record by its number and store the good ones, without secrets", async () => {
    const { call } = await fresh();
    const good = { id: "a", summary: "Good", created_at: "2026-01-01T00:00:00Z" };
    const { secret } = plantedSecrets(9).find(({ kind }) => kind === "github-token")!;
    const reported = await call("checkpoint_import", {
      project_path,
      records: [
        good,
        { ...good, id: "b", summary: "" },
        { ...good, id: "c", created_at: "yesterday" },
        {},
        { ...good, id: "d", description: secret },
        good,
      ],
    });
    expect(reported).toMatchObject({ imported: 2, present: 1, redacted: [{ kind: "github-token", field: "description", count: 1 }] });
    expect(reported.problems.map(({ record }: { record: number }) => record)).toEqual([2, 3, 4]);
    expect(JSON.stringify(await call("checkpoint_export", { project_path }))).not.toContain(secret);
  });
});
