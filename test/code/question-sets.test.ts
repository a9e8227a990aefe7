import { describe, expect, it } from "vitest";
import { answersOf, type Question, questionSets } from "../../bench/code-recall/question-set.ts";
import { scoreFiles, scorePlaces } from "../../bench/code-recall/score.ts";

describe("the questions about code", () => {
  const sets = questionSets();
  const questions = sets.flatMap((set) => set.questions);

  it("are enough, of several languages, a quarter of them by a name or a message", () => {
    expect(questions.length).toBeGreaterThanOrEqual(60);
    expect(new Set(sets.map(({ language }) => language)).size).toBeGreaterThanOrEqual(3);
    const tuned = sets.filter(({ group }) => group !== "validation").flatMap((set) => set.questions);
    expect(tuned.filter(({ kind }) => kind !== "behaviour").length).toBeGreaterThanOrEqual(tuned.length / 4);
    for (const part of ["tuning", "held_out"]) expect(questions.filter((question) => question.part === part).length).toBeGreaterThan(25);
  });

  it("include 60 independent ones about Rust and TypeScript and 30 for validation, none about a repository of the evaluation elsewhere", () => {
    const independent = sets.filter(({ group }) => group === "independent");
    expect(independent.flatMap((set) => set.questions).length).toBeGreaterThanOrEqual(60);
    expect(new Set(independent.map(({ language }) => language))).toEqual(new Set(["rust", "typescript"]));
    const validation = sets.filter(({ group }) => group === "validation");
    expect(validation.flatMap((set) => set.questions).length).toBeGreaterThanOrEqual(30);
    for (const { sha256, version } of sets) expect(`${version} ${sha256}`).toMatch(/^\d+\.\d+\.\d+ [0-9a-f]{64}$/);
    const heldOut = ["zod", "trpc", "vitest", "axios", "express", "redux", "axum", "serde", "tokio"];
    expect(sets.filter((set) => heldOut.includes(set.package))).toEqual([]);
  });

  it("each name at least one place that answers, and ask nothing twice", () => {
    expect(new Set(questions.map(({ ask }) => ask)).size).toBe(questions.length);
    for (const question of questions) {
      const answers = answersOf(question);
      expect(Math.max(...answers.map(({ grade }) => grade)), question.ask).toBe(3);
      for (const { startLine, endLine, grade } of answers) {
        expect(startLine, question.ask).toBeLessThanOrEqual(endLine);
        expect([1, 2, 3]).toContain(grade);
      }
    }
  });
});

describe("the scores", () => {
  const question: Question = { kind: "behaviour", ask: "?", part: "tuning", answers: { "a.ts:10-20": 3, "a.ts:30-40": 2, "b.ts:1-5": 1 } };

  it("are full for the best order, and count a file once", () => {
    expect(scoreFiles(question, ["a.ts", "a.ts", "b.ts"])).toEqual({ ndcg10: 1, mrr: 1, top1: 1 });
    const late = scoreFiles(question, ["x.ts", "y.ts", "a.ts"]);
    expect(late).toMatchObject({ mrr: 1 / 3, top1: 0 });
    expect(late.ndcg10).toBeGreaterThan(0.4);
    expect(late.ndcg10).toBeLessThan(0.6);
    expect(scoreFiles(question, [])).toEqual({ ndcg10: 0, mrr: 0, top1: 0 });
  });

  it("count a place once, however many hits lie in it", () => {
    const hit = (path: string, startLine: number, endLine: number) => ({ path, startLine, endLine });
    expect(scorePlaces(question, [hit("a.ts", 12, 14), hit("a.ts", 30, 31), hit("b.ts", 5, 9)])).toBe(1);
    const twice = scorePlaces(question, [hit("a.ts", 12, 14), hit("a.ts", 15, 16)]);
    expect(twice).toBe(scorePlaces(question, [hit("a.ts", 12, 14)]));
    expect(scorePlaces(question, [hit("a.ts", 21, 29)])).toBe(0);
  });
});
