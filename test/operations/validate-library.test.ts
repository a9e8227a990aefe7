import { afterAll, describe, expect, it } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import { wrongInput } from "../support/wrong-input.ts";

const projectPath = "/home/someone/app";
const letters = (count: number) => "x".repeat(count);
const many = (count: number) => Array.from({ length: count }, (_, index) => `t${index}`);
const pairs = (count: number) => Object.fromEntries(many(count).map((key) => [key, "v"]));

const cairn: Cairn = await open({ storage: "memory", embedder: { kind: "none" } });
afterAll(() => cairn.close());

/** Calls with one thing that is just over a limit or plainly wrong, and the field that is to be named. */
const REFUSED: [string, (cairn: Cairn) => Promise<unknown>, string][] = [
  ["an empty summary", ({ checkpoints }) => checkpoints.save({ projectPath, summary: "" }), "summary: must not be empty"],
  ["501 characters", ({ checkpoints }) => checkpoints.save({ projectPath, summary: letters(501) }), "summary: must have at most 500"],
  ["a long text", ({ checkpoints }) => checkpoints.save({ projectPath, summary: "s", description: letters(10_001) }), "description: "],
  ["51 pairs", ({ checkpoints }) => checkpoints.save({ projectPath, summary: "s", context: pairs(51) }), "context: at most 50 pairs"],
  [
    "a long name of a pair",
    ({ checkpoints }) => checkpoints.save({ projectPath, summary: "s", context: { [letters(51)]: "v" } }),
    "as a name, must have at most 50 characters",
  ],
  ["21 tags", ({ checkpoints }) => checkpoints.save({ projectPath, summary: "s", tags: many(21) }), "tags: at most 20 tags"],
  ["a relative path", ({ checkpoints }) => checkpoints.save({ projectPath: "app", summary: "s" }), "projectPath: must be an absolute path"],
  ["a path with dots", ({ checkpoints }) => checkpoints.save({ projectPath: "/a/../b", summary: "s" }), 'cleaned form: "/b"'],
  ["no path", ({ checkpoints }) => checkpoints.save(wrongInput({ summary: "s" })), "projectPath: is missing"],
  ["a long query", ({ checkpoints }) => checkpoints.search({ projectPath, query: letters(1_001) }), "query: "],
  ["101 results", ({ checkpoints }) => checkpoints.search({ projectPath, query: "q", topK: 101 }), "topK: must be at most 100"],
  ["a list of 101", ({ checkpoints }) => checkpoints.list({ projectPath, limit: 101 }), "limit: must be at most 100"],
  ["a list of none", ({ checkpoints }) => checkpoints.list({ projectPath, limit: 0 }), "limit: must be at least 1"],
  ["no time", ({ checkpoints }) => checkpoints.list({ projectPath, createdFrom: "yesterday" }), "createdFrom: must be a time such as"],
  ["no time", ({ checkpoints }) => checkpoints.prune({ projectPath, createdBefore: "30d" }), "createdBefore: must be a time such as"],
  [
    "an unknown level",
    ({ checkpoints }) => checkpoints.resume({ projectPath, level: wrongInput("all") }),
    'level: must be one of "summary"',
  ],
  ["a long question", ({ knowledge }) => knowledge.save({ projectPath, question: letters(4_001), answer: "a" }), "question: "],
  [
    "an unknown kind",
    ({ knowledge }) => knowledge.save({ projectPath, kind: wrongInput("lore"), question: "q", answer: "a" }),
    'kind: must be one of "skill"',
  ],
  [
    "a record without an answer",
    ({ knowledge }) => knowledge.import({ projectPath, source: "s", records: [wrongInput({ id: "a", kind: "faq", question: "q" })] }),
    "records.0.answer: is missing",
  ],
  ["a list of no runs", ({ runs }) => runs.list({ limit: 0 }), "limit: must be at least 1"],
  ["an empty run id", ({ runs }) => runs.get({ runId: "" }), "runId: must not be empty"],
  ["a time that is no text", ({ runs }) => runs.store.prune({ olderThan: wrongInput(new Date()) }), "olderThan must be a time in ISO 8601"],
];

describe("the library", () => {
  it.each(REFUSED)("refuses %s as the other surfaces do", async (_, call, said) => {
    await expect(call(cairn)).rejects.toMatchObject({ code: "invalid_input", message: expect.stringContaining(said) });
  });

  it("takes everything up to its limit", async () => {
    const most = { summary: letters(500), description: letters(10_000), context: { ...pairs(49), [letters(50)]: letters(500) } };
    const saved = await cairn.checkpoints.save({ projectPath, ...most, tags: many(20) });
    expect(await cairn.checkpoints.get({ projectPath, id: saved.id })).toMatchObject({ ...most, tags: many(20) });
    const { hits } = await cairn.checkpoints.search({ projectPath, query: letters(1_000), topK: 100, mode: "keyword" });
    expect(hits.length).toBeLessThanOrEqual(1);
    const { total } = await cairn.checkpoints.list({ projectPath, limit: 100, createdFrom: "2020-01-01T00:00:00+02:00" });
    expect(total).toBe(1);
    const { kind } = await cairn.knowledge.save({ projectPath, question: letters(4_000), answer: letters(20_000) });
    expect(kind).toBe("skill");
  });
});
