import { describe, expect, it } from "vitest";
import type { z } from "zod";
import { checkpointResume } from "../../src/checkpoints/operations.ts";
import { resumeAt } from "../../src/checkpoints/resume.ts";
import { CheckpointOutput } from "../../src/checkpoints/wire-schemas.ts";
import { decorateOperations } from "../../src/client/decorate-operations.ts";
import { answerOf, type Output } from "../../src/mcp/answer.ts";
import { chooseOperations } from "../../src/mcp/tools.ts";
import type { Checkpoint } from "../../src/model/checkpoint.ts";
import { operations as served } from "../../src/operations/list.ts";
import type { Operation } from "../../src/operations/operation.ts";
import { toCamel, toWire } from "../../src/operations/wire.ts";
import { countTokens } from "../support/o200k.ts";
import { type SampleSize, sampleOf } from "./sample-output.ts";

const TOOLS = chooseOperations(decorateOperations(served), ["core", "code", "knowledge", "runs", "systems", "admin"]);

/** Tokens that the braces and the name of one field cost; they matter only where the text is a word or two. */
const JSON_FRAME = 5;

/** The tokens of both forms of an answer, as a model of OpenAI counts them. */
async function tokensOf(operation: Operation, size: SampleSize, maxTokens: number, detail: "compact" | "full" = "compact") {
  const output = (operation.name === "checkpoint_resume" ? sampleResumed(size, maxTokens) : sampleOf(operation.output, size)) as Output;
  const rows = operation.mcp?.rows;
  const repeat = async (limit: number) => ({ ...output, ...(rows && { [rows]: (output[rows] as unknown[]).slice(0, limit) }) });
  const { content, structuredContent } = await answerOf(operation, output, { detail, maxTokens, repeat });
  const text = (content[0] as { text: string }).text;
  return { text: countTokens(text), structured: countTokens(JSON.stringify(structuredContent)), data: structuredContent!, shown: text };
}

/** The text of a resumed checkpoint repeats its fields, so both come from the function that makes them. */
function sampleResumed(size: SampleSize, maxTokens: number): unknown {
  const checkpoint = toCamel(
    CheckpointOutput,
    sampleOf(CheckpointOutput, size) as z.output<typeof CheckpointOutput>,
  ) as unknown as Checkpoint;
  return toWire(checkpointResume.output, resumeAt(checkpoint, "full", maxTokens));
}

describe.each(TOOLS.map((operation) => ({ name: operation.name, operation })))("the answer of $name", ({ operation }) => {
  it("has at most 1.3 times as many tokens as structured content as it has as text", async () => {
    for (const items of [1, 10]) {
      const { text, structured, data, shown } = await tokensOf(operation, { items, sentences: 2 }, 100_000);
      expect(structured, `${shown}\n${JSON.stringify(data)}`).toBeLessThanOrEqual(1.3 * text + JSON_FRAME);
    }
  });

  it("has no hashes and no number with more than three digits after the point", async () => {
    if (operation.name === "checkpoint_export") return; // a copy of the records, with the hashes of their anchors
    const { data } = await tokensOf(operation, { items: 3, sentences: 1 }, 100_000);
    expect(JSON.stringify(data)).not.toMatch(/[0-9a-f]{32}|":\d+\.\d{4}/);
  });

  it.each(["compact", "full"] as const)("honours max_tokens in both forms, with the detail %s", async (detail) => {
    for (const maxTokens of [200, 1_500])
      for (const size of [
        { items: 100, sentences: 3 },
        { items: 2, sentences: 200 },
      ]) {
        const { text, structured, shown } = await tokensOf(operation, size, maxTokens, detail);
        expect(Math.max(text, structured), `${maxTokens} ${JSON.stringify(size)} ${shown.slice(0, 300)}`).toBeLessThanOrEqual(
          1.1 * maxTokens,
        );
      }
  });
});

it("leaves out what is usual: the scope of the project, and code that is not stale", async () => {
  const named = (name: string) => TOOLS.find((operation) => operation.name === name)!;
  const hit = { path: "a.ts", start_line: 1, end_line: 1, text: "one", language: "typescript", stale: false };
  const compact = (name: string, output: unknown) => JSON.stringify(named(name).mcp!.compact!(output as never));
  expect(compact("code_context", { contexts: [hit] })).toBe('{"contexts":[{"path":"a.ts","lines":"1-1","text":"one"}]}');
  expect(compact("code_context", { contexts: [{ ...hit, stale: true }] })).toContain('"stale":true');
  const found = { knowledge: { id: "1", kind: "skill", question: "q", answer: "a" }, scope: "project", score: 0.7, confidence: "high" };
  expect(compact("knowledge_search", { results: [found] })).not.toContain("scope");
  expect(compact("knowledge_search", { results: [{ ...found, scope: "shared" }] })).toContain('"scope":"shared"');
});
