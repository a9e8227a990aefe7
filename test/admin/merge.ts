import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type OpenOptions, open } from "../../src/open/open.ts";
import type { Cairn } from "../../src/operations/cairn.ts";
import { testEmbedder } from "../support/embedders.ts";

/** More than one page. */
const COUNT = 105;

/** Checks the merging of projects on one storage. */
export function mergeSuite(name: string, storageOptions: (dataDir: string) => Promise<OpenOptions>): void {
  describe(`merging projects, ${name}`, () => {
    const folder = mkdtempSync(join(tmpdir(), "cairn-merge-"));
    let cairn: Cairn;
    let number = 0;
    let from: string;
    let into: string;

    beforeAll(async () => {
      cairn = await open({ ...(await storageOptions(folder)), embedder: [testEmbedder()] });
    });
    beforeEach(() => {
      number += 1;
      into = `/home/me/app${number}`;
      from = `${into}/packages/api`;
    });
    afterAll(async () => {
      await cairn.close();
      rmSync(folder, { recursive: true, force: true });
    });

    const checkpointsOf = async (projectPath: string) => {
      const found = [];
      let cursor: string | undefined;
      do {
        const page = await cairn.checkpoints.list({ projectPath, limit: 100, cursor });
        found.push(...page.checkpoints);
        cursor = page.nextCursor;
      } while (cursor !== undefined);
      return found.map(({ projectPath: _, revision: __, ...rest }) => rest);
    };
    const knowledgeOf = async (projectPath: string) => (await cairn.knowledge.list({ projectPath, limit: 100 })).records;
    const saveStep = (projectPath: string, summary: string) =>
      cairn.checkpoints.save({ projectPath, summary, tags: ["t"], context: { a: "b" } });
    const saveFact = (projectPath: string, id: string, answer: string) =>
      cairn.knowledge.save({ projectPath, id, question: `What is ${id}?`, answer });

    it("moves every record with its id, times, counts and vectors, and lists the old project no more", async () => {
      for (let step = 0; step < COUNT; step++) await saveStep(from, `Step ${step} of the import`);
      const { id } = await saveStep(into, "Saved in the right project");
      await saveFact(from, "deploy", "Push the tag.");
      for (const success of [true, true, false]) await cairn.knowledge.feedback({ projectPath: from, id: "deploy", success });
      const [steps, facts] = [await checkpointsOf(from), await knowledgeOf(from)];

      const report = await cairn.transfer.merge({ from, into });
      expect(report).toMatchObject({ from, into, checkpoints: COUNT, knowledge: 1, renamed: [], kept: 0, problems: [], removed: true });
      const moved = await checkpointsOf(into);
      expect(moved.filter((one) => one.id !== id)).toEqual(steps);
      expect(moved).toHaveLength(COUNT + 1);
      expect(await knowledgeOf(into)).toEqual(facts);
      expect(facts[0]).toMatchObject({ uses: 3, successes: 2 });
      const { hits } = await cairn.checkpoints.search({ projectPath: into, query: "Step 17 of the import", mode: "semantic", topK: 1 });
      expect(hits[0]).toMatchObject({ record: { summary: "Step 17 of the import" } });
      expect(await cairn.projects()).not.toContain(from);
      expect(await cairn.projects()).toContain(into);
      await expect(cairn.transfer.merge({ from, into })).rejects.toMatchObject({ code: "not_found" });
    });

    it("continues a merge that ended after copying, without duplicates and with later feedback", async () => {
      const saved = [];
      for (let step = 0; step < 5; step++) saved.push(await saveStep(from, `Step ${step}`));
      await saveFact(from, "deploy", "Push the tag.");
      await cairn.knowledge.feedback({ projectPath: from, id: "deploy", success: true });
      const copied = saved
        .slice(0, 3)
        .map(({ createdAt, updatedAt, ...rest }) => ({ ...rest, created_at: createdAt, updated_at: updatedAt }));
      await cairn.checkpoints.import({ projectPath: into, records: copied });
      await cairn.checkpoints.update({ projectPath: into, id: saved[0]!.id, summary: "Edited after the crash" });
      await cairn.knowledge.importRecords({ database: into, records: await knowledgeOf(from) });
      await cairn.knowledge.feedback({ projectPath: into, id: "deploy", success: true });

      expect(await cairn.transfer.merge({ from, into })).toMatchObject({
        checkpoints: 5,
        knowledge: 1,
        renamed: [],
        kept: 0,
        removed: true,
      });
      const summaries = (await checkpointsOf(into)).map(({ summary }) => summary);
      expect(summaries.sort()).toEqual(["Edited after the crash", "Step 1", "Step 2", "Step 3", "Step 4"]);
      expect(await knowledgeOf(into)).toMatchObject([{ id: "deploy", uses: 2, successes: 2 }]);
    });

    it("moves a record under a new id when the project has another one with its id", async () => {
      await saveFact(into, "deploy", "Press the button.");
      await saveFact(into, "same", "Equal in both.");
      await saveFact(from, "deploy", "Push the tag.");
      await saveFact(from, "same", "Equal in both.");
      const { renamed, ...report } = await cairn.transfer.merge({ from, into });
      expect(report).toMatchObject({ knowledge: 2, kept: 0, removed: true });
      expect(renamed).toEqual([{ id: "deploy", newId: expect.stringMatching(/^deploy-[0-9a-f]{8}$/) }]);
      const answers = Object.fromEntries((await knowledgeOf(into)).map(({ id, answer }) => [id, answer]));
      expect(answers).toEqual({ deploy: "Press the button.", same: "Equal in both.", [renamed[0]!.newId]: "Push the tag." });
    });

    it("takes records of the same id and the same millisecond for two if their texts differ", async () => {
      const at = "2026-01-02T03:04:05.678Z";
      const fact = { id: "deploy", kind: "faq" as const, category: "c", subcategory: "", question: "How?", createdAt: at, updatedAt: at };
      await cairn.knowledge.import({ projectPath: into, source: "a.json", records: [{ ...fact, answer: "Press the button." }] });
      await cairn.knowledge.import({ projectPath: from, source: "a.json", records: [{ ...fact, answer: "Push the tag." }] });
      await cairn.transfer.merge({ from, into });
      expect((await knowledgeOf(into)).map(({ answer }) => answer).sort()).toEqual(["Press the button.", "Push the tag."]);
    });

    it("only counts in a dry run", async () => {
      await saveStep(from, "One");
      await cairn.code.indexBatch({ projectPath: from, files: [{ path: "a.txt", content: "one line\n" }] });
      const report = await cairn.transfer.merge({ from, into, dryRun: true });
      expect(report).toMatchObject({ dryRun: true, checkpoints: 1, knowledge: 0, codeFiles: 1, removed: false });
      expect(await checkpointsOf(from)).toHaveLength(1);
      expect(await cairn.projects()).not.toContain(into);
      expect((await cairn.code.stats({ projectPath: from })).files).toBe(1);
    });

    it("deletes the code index of the old path unless it is to be kept", async () => {
      await saveStep(from, "One");
      await cairn.code.indexBatch({ projectPath: from, files: [{ path: "a.txt", content: "one line\n" }] });
      expect(await cairn.transfer.merge({ from, into, keepCode: true })).toMatchObject({ checkpoints: 1, codeFiles: 0, removed: false });
      expect((await cairn.code.stats({ projectPath: from })).files).toBe(1);
      expect(await cairn.transfer.merge({ from, into })).toMatchObject({ checkpoints: 0, codeFiles: 1, removed: true });
      expect((await cairn.code.stats({ projectPath: from })).files).toBe(0);
      expect(await cairn.projects()).not.toContain(from);
    });

    it("refuses the project itself, shared knowledge and a project without records", async () => {
      await saveStep(from, "One");
      await expect(cairn.transfer.merge({ from, into: from })).rejects.toMatchObject({ code: "invalid_input" });
      await expect(cairn.transfer.merge({ from, into: "shared" })).rejects.toMatchObject({ code: "invalid_input" });
      await cairn.knowledge.save({ scope: "shared", question: "Who?", answer: "All." });
      await expect(cairn.transfer.merge({ from: "shared", into })).rejects.toMatchObject({ code: "not_found" });
      await expect(cairn.transfer.merge({ from: "/never", into })).rejects.toMatchObject({ code: "not_found" });
      expect(await checkpointsOf(from)).toHaveLength(1);
    });
  });
}
