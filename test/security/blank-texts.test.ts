import { afterAll, describe, expect, it } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import { operations } from "../../src/operations/list.ts";
import { END, graph, memoryRunStore } from "../../src/runs.ts";
import { system } from "../../src/systems.ts";

const projectPath = "/home/someone/app";
const cairn: Cairn = await open({ storage: "memory", embedder: { kind: "none" } });
afterAll(() => cairn.close());

const BLANKS = {
  spaces: "   ",
  "tabs and newlines": "\t\r\n",
  "zero-width spaces": "\u200b\u200c\u200d\u2060\ufeff",
  "a no-break space": "\u00a0",
  "a Hangul filler": "\u3164",
  "an empty Braille pattern": "\u2800",
  "direction marks": "\u200e\u202e",
  "control characters": "\u0001\u007f",
};
const blank = "\u200b ";
const refusal = { code: "invalid_input", message: expect.stringContaining("blank") };

describe("blank texts", () => {
  it.each(Object.entries(BLANKS))("refuses a summary of %s", async (_, summary) => {
    await expect(cairn.checkpoints.save({ projectPath, summary })).rejects.toMatchObject(refusal);
  });

  it.each<[string, (cairn: Cairn) => Promise<unknown>]>([
    ["a tag", ({ checkpoints }) => checkpoints.save({ projectPath, summary: "s", tags: ["a", blank] })],
    ["the name of a context pair", ({ checkpoints }) => checkpoints.save({ projectPath, summary: "s", context: { [blank]: "v" } })],
    ["a query", ({ checkpoints }) => checkpoints.search({ projectPath, query: blank })],
    ["a question", ({ knowledge }) => knowledge.save({ projectPath, question: blank, answer: "a" })],
    ["an answer", ({ knowledge }) => knowledge.save({ projectPath, question: "q", answer: blank })],
    ["the id of knowledge", ({ knowledge }) => knowledge.save({ projectPath, id: blank, question: "q", answer: "a" })],
    [
      "the question of an imported record",
      ({ knowledge }) =>
        knowledge.import({
          projectPath,
          source: "s",
          records: [{ id: "a", kind: "faq", category: "", subcategory: "", question: blank, answer: "a" }],
        }),
    ],
    ["a run id", ({ runs }) => runs.get({ runId: blank })],
  ])("refuses %s that is blank", async (_, call) => {
    await expect(call(cairn)).rejects.toMatchObject(refusal);
  });

  it("refuses a blank summary in an update and keeps the checkpoint as it was", async () => {
    const { id } = await cairn.checkpoints.save({ projectPath, summary: "visible" });
    await expect(cairn.checkpoints.update({ projectPath, id, summary: blank })).rejects.toMatchObject(refusal);
    expect((await cairn.checkpoints.get({ projectPath, id })).summary).toBe("visible");
  });

  it("reports a blank summary in an import as a problem of that record", async () => {
    const records = [{ id: "blank", summary: blank, created_at: "2026-01-01T00:00:00Z" }];
    const { imported, problems } = await cairn.checkpoints.import({ projectPath, records });
    expect(imported).toBe(0);
    expect(problems).toEqual([{ record: 1, problem: expect.stringContaining("summary: must not be blank") }]);
  });

  it("refuses a run that is started under a blank id, and a node with a blank name", async () => {
    const steps = graph<{ n: number }>()
      .node("one", (state) => state)
      .entry("one")
      .edge("one", END)
      .compile();
    await expect(steps.run({ n: 1 }, { runId: blank, store: memoryRunStore() })).rejects.toThrow("blank");
    const nameless = graph<object>()
      .node("\u200b", (state) => state)
      .entry("\u200b")
      .edge("\u200b", END);
    expect(() => nameless.compile()).toThrow("not blank");
  });

  it("refuses blank names of components and messages of a system", async () => {
    const open = system({ systemId: "blank-names", storage: { storage: "memory" } });
    await expect((async () => open.component(blank))()).rejects.toThrow("blank");
    await open.close();
  });

  it("refuses a blank text in every required text field of every operation, so on MCP, HTTP and the command line", () => {
    const accepting: string[] = [];
    for (const { name, input } of operations) {
      for (const [field, schema] of Object.entries(input.shape)) {
        if (!schema.safeParse("visible").success || schema.safeParse("").success) continue; // not a text, or one that may be empty
        if (schema.safeParse(blank).success) accepting.push(`${name}.${field}`);
      }
    }
    expect(accepting).toEqual([]);
  });

  it("takes texts that have invisible characters beside visible ones, as emoji sequences do", async () => {
    const summary = "👩‍👩‍👧‍👦 \u200b done";
    expect((await cairn.checkpoints.save({ projectPath, summary })).summary).toBe(summary);
  });
});
