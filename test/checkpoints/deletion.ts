import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type OpenOptions, open } from "../../src/open/open.ts";
import type { Cairn } from "../../src/operations/cairn.ts";
import { testEmbedder } from "../support/embedders.ts";

const DAY_MS = 24 * 3_600_000;

/** What every storage must do with deleted records, through the services. */
export function deletionSuite(name: string, storageOptions: (dataDir: string) => Promise<OpenOptions>): void {
  describe(`deleted records, ${name}`, () => {
    const dataDir = mkdtempSync(join(tmpdir(), "cairn-deletion-"));
    let nowMs = Date.parse("2026-03-01T12:00:00.000Z");
    let cairn: Cairn;
    let count = 0;
    const project = () => `/deleted/project-${count++}`;

    beforeAll(async () => {
      const now = () => new Date(nowMs).toISOString();
      cairn = await open({ ...(await storageOptions(dataDir)), embedder: [testEmbedder()], now, retention: { deletedDays: 10 } });
    });
    afterAll(async () => {
      await cairn.close();
      rmSync(dataDir, { recursive: true, force: true });
    });

    const notFound = expect.objectContaining({ code: "not_found" });

    it("leaves searches, lists, counts, tags, resume and stats, and returns with a restore", async () => {
      const projectPath = project();
      const older = await cairn.checkpoints.save({ projectPath, summary: "Rotate the certificates", tags: ["tls"] });
      nowMs += 1_000;
      const { id } = await cairn.checkpoints.save({ projectPath, summary: "Certificates were rotated", tags: ["tls", "done"] });
      const deletion = await cairn.checkpoints.delete({ projectPath, id });
      expect(deletion).toEqual({
        id,
        deleted: true,
        deletedAt: new Date(nowMs).toISOString(),
        restorableUntil: new Date(nowMs + 10 * DAY_MS).toISOString(),
      });
      nowMs += 1_000;
      expect(await cairn.checkpoints.delete({ projectPath, id })).toEqual(deletion);

      for (const mode of ["hybrid", "semantic", "keyword"] as const) {
        const { hits } = await cairn.checkpoints.search({ projectPath, query: "certificates rotated", mode });
        expect(hits.map(({ record }) => record.id)).toEqual([older.id]);
      }
      expect((await cairn.checkpoints.list({ projectPath })).total).toBe(1);
      expect(await cairn.checkpoints.tags({ projectPath })).toEqual({ tags: [{ tag: "tls", count: 1 }] });
      expect((await cairn.checkpoints.resume({ projectPath })).checkpoint.id).toBe(older.id);
      expect((await cairn.checkpoints.prune({ projectPath, keepLast: 0, dryRun: true })).matched).toBe(1);
      const { projects } = await cairn.stats.read({ projectPath, mayTouch: () => true });
      expect(projects[0]).toMatchObject({ checkpoints: 1, vectors: 1, vectorsMissing: 0 });
      await expect(cairn.checkpoints.get({ projectPath, id })).rejects.toEqual(notFound);
      await expect(cairn.checkpoints.update({ projectPath, id, summary: "x" })).rejects.toEqual(notFound);
      const { checkpoints, total } = await cairn.checkpoints.list({ projectPath, deleted: true });
      expect([total, checkpoints.map((one) => [one.id, one.deletedAt])]).toEqual([1, [[id, deletion.deletedAt]]]);

      expect(await cairn.checkpoints.restore({ projectPath, id })).toMatchObject({
        id,
        summary: "Certificates were rotated",
        embedded: true,
      });
      expect(await cairn.checkpoints.restore({ projectPath, id })).toMatchObject({ id });
      const { hits } = await cairn.checkpoints.search({ projectPath, query: "certificates rotated", mode: "semantic" });
      expect(hits.map(({ record }) => record.id)).toContain(id);
      expect((await cairn.checkpoints.resume({ projectPath })).checkpoint.id).toBe(id);
      expect((await cairn.checkpoints.list({ projectPath, deleted: true })).total).toBe(0);
    });

    it("reports unknown and purged ids as not found", async () => {
      const projectPath = project();
      const { id } = await cairn.checkpoints.save({ projectPath, summary: "Short-lived" });
      await cairn.knowledge.save({ projectPath, id: "k", question: "Why?", answer: "Because." });
      await cairn.checkpoints.delete({ projectPath, id });
      expect(await cairn.checkpoints.purge({ projectPath, id })).toEqual({ purged: true });
      expect(await cairn.knowledge.purge({ projectPath, id: "k" })).toEqual({ purged: true });
      for (const verb of ["delete", "restore", "purge"] as const) {
        await expect(cairn.checkpoints[verb]({ projectPath, id })).rejects.toEqual(notFound);
        await expect(cairn.checkpoints[verb]({ projectPath: project(), id })).rejects.toEqual(notFound);
        await expect(cairn.knowledge[verb]({ projectPath, id: "k" })).rejects.toEqual(notFound);
      }
    });

    it("keeps the counts of restored knowledge, and takes a new record under the id of a deleted one", async () => {
      const projectPath = project();
      await cairn.knowledge.save({ projectPath, id: "release", question: "How do we release?", answer: "Old way." });
      await cairn.knowledge.feedback({ projectPath, id: "release", success: true });
      await cairn.knowledge.delete({ projectPath, id: "release" });
      expect((await cairn.knowledge.search({ projectPath, query: "How do we release?" })).hits).toEqual([]);
      await expect(cairn.knowledge.feedback({ projectPath, id: "release", success: true })).rejects.toEqual(notFound);
      expect((await cairn.knowledge.list({ projectPath, deleted: true })).records[0]).toMatchObject({ id: "release", uses: 1 });
      expect(await cairn.knowledge.restore({ projectPath, id: "release" })).toMatchObject({ uses: 1, successes: 1, answer: "Old way." });
      await cairn.knowledge.delete({ projectPath, id: "release" });
      await cairn.knowledge.save({ projectPath, id: "release", question: "How do we release?", answer: "New way." });
      expect(await cairn.knowledge.restore({ projectPath, id: "release" })).toMatchObject({ answer: "New way.", uses: 0 });
      expect((await cairn.knowledge.list({ projectPath, deleted: true })).total).toBe(0);
    });

    it("erases records when their retention has ended, and no others", async () => {
      const [one, two] = [project(), project()];
      const saved = await Promise.all([one, two].map((projectPath) => cairn.checkpoints.save({ projectPath, summary: "To be deleted" })));
      await cairn.checkpoints.delete({ projectPath: one, id: saved[0]!.id });
      await cairn.knowledge.save({ projectPath: one, id: "k", question: "Why?", answer: "Because." });
      await cairn.knowledge.delete({ projectPath: one, id: "k" });
      nowMs += 5 * DAY_MS;
      await cairn.checkpoints.delete({ projectPath: two, id: saved[1]!.id });
      nowMs += 5 * DAY_MS;
      await cairn.retention.upkeep();
      expect((await cairn.checkpoints.list({ projectPath: one, deleted: true })).total).toBe(1); // exactly at the end, not after it
      nowMs += 1;
      const erased = await cairn.retention.upkeep();
      expect(erased.checkpoints).toBeGreaterThanOrEqual(1);
      expect((await cairn.checkpoints.list({ projectPath: one, deleted: true })).total).toBe(0);
      expect((await cairn.knowledge.list({ projectPath: one, deleted: true })).total).toBe(0);
      await expect(cairn.checkpoints.restore({ projectPath: one, id: saved[0]!.id })).rejects.toEqual(notFound);
      expect(await cairn.checkpoints.restore({ projectPath: two, id: saved[1]!.id })).toMatchObject({ summary: "To be deleted" });
    });

    it("exports deleted checkpoints after the others, and imports them as deleted", async () => {
      const [from, to] = [project(), project()];
      const ids: string[] = [];
      for (let i = 0; i < 7; i++) {
        nowMs += 1_000;
        ids.push((await cairn.checkpoints.save({ projectPath: from, summary: `Step ${i}` })).id);
      }
      for (const id of ids.slice(0, 4)) await cairn.checkpoints.delete({ projectPath: from, id });
      const records: unknown[] = [];
      let cursor: string | undefined;
      do {
        const page = await cairn.checkpoints.export({ projectPath: from, limit: 2, cursor });
        expect(page.total).toBe(7);
        records.push(...page.records);
        cursor = page.nextCursor;
      } while (cursor !== undefined);
      expect(records.length).toBe(7);
      const bare = await cairn.checkpoints.export({ projectPath: from, limit: 100, withoutDeleted: true });
      expect([bare.total, bare.records.length, bare.nextCursor]).toEqual([3, 3, undefined]);

      const wire = (records as { deletedAt?: string; createdAt: string; id: string; summary: string }[]).map((one) => ({
        ...{ id: one.id, summary: one.summary, created_at: one.createdAt },
        ...(one.deletedAt !== undefined && { deleted_at: one.deletedAt }),
      }));
      expect(await cairn.checkpoints.import({ projectPath: to, records: wire })).toMatchObject({ imported: 7, present: 0 });
      expect(await cairn.checkpoints.import({ projectPath: to, records: wire })).toMatchObject({ imported: 0, present: 7 });
      expect((await cairn.checkpoints.list({ projectPath: to })).total).toBe(3);
      expect((await cairn.checkpoints.list({ projectPath: to, deleted: true })).total).toBe(4);
    });

    it("moves deleted records with a merge", async () => {
      const [from, into] = [project(), project()];
      const { id } = await cairn.checkpoints.save({ projectPath: from, summary: "Deleted before the merge" });
      await cairn.checkpoints.delete({ projectPath: from, id });
      await cairn.knowledge.save({ projectPath: from, id: "k", question: "Why?", answer: "Because." });
      await cairn.knowledge.delete({ projectPath: from, id: "k" });
      expect(await cairn.transfer.merge({ from, into, dryRun: true })).toMatchObject({ deleted: 2 });
      expect(await cairn.transfer.merge({ from, into })).toMatchObject({ checkpoints: 0, deleted: 2, kept: 0, problems: [] });
      expect((await cairn.checkpoints.list({ projectPath: from, deleted: true })).total).toBe(0);
      expect((await cairn.checkpoints.list({ projectPath: into })).total).toBe(0);
      expect(await cairn.checkpoints.restore({ projectPath: into, id })).toMatchObject({ summary: "Deleted before the merge" });
      expect(await cairn.knowledge.restore({ projectPath: into, id: "k" })).toMatchObject({ answer: "Because." });
    });

    it("refuses filters together with deleted records", async () => {
      const projectPath = project();
      const invalid = expect.objectContaining({ code: "invalid_input" });
      await expect(cairn.checkpoints.list({ projectPath, deleted: true, tags: ["a"] })).rejects.toEqual(invalid);
      await expect(cairn.knowledge.list({ projectPath, deleted: true, kind: "faq" })).rejects.toEqual(invalid);
    });
  });
}
