import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type OpenOptions, open } from "../../src/open/open.ts";
import type { Cairn } from "../../src/operations/cairn.ts";
import { plantedSecrets } from "../redaction/planted.ts";
import { testEmbedder } from "../support/embedders.ts";

const FROM = "/home/me/from";
const COUNT = 110;

/** What every storage must do with a project as one file. */
export function transferSuite(name: string, storageOptions: (dataDir: string) => Promise<OpenOptions>): void {
  describe(`a project as one file, ${name}`, () => {
    const folder = mkdtempSync(join(tmpdir(), "cairn-transfer-"));
    const path = (file: string) => join(folder, file);
    const planted = plantedSecrets(2027);
    let cairn: Cairn;
    let elsewhere: Cairn;

    beforeAll(async () => {
      const embedder = [testEmbedder()];
      cairn = await open({ ...(await storageOptions(path("data"))), embedder });
      elsewhere = await open({ dataDir: path("elsewhere"), embedder });
      await Promise.all(
        Array.from({ length: COUNT }, (_, i) =>
          cairn.checkpoints.save({
            projectPath: FROM,
            summary: `Step ${i}: ümlaut ☃`,
            context: { branch: `b${i}` },
            tags: ["A,b", `t${i % 3}`],
          }),
        ),
      );
      for (const { text } of planted)
        await cairn.checkpoints.save({ projectPath: FROM, summary: "A note", description: `It said:\n${text}\nand so on` });
      for (let i = 0; i < 105; i++)
        await cairn.knowledge.save({
          ...{ projectPath: FROM, id: `k${i}`, kind: "faq", category: "c" },
          ...{ question: `Where is ${i}?`, answer: `In drawer ${i}. ${planted[i % planted.length]!.text}` },
        });
      for (const success of [true, true, false]) await cairn.knowledge.feedback({ projectPath: FROM, id: "k7", success });
      const { id } = await cairn.checkpoints.save({ projectPath: FROM, summary: "Regretted and purged" });
      await cairn.checkpoints.purge({ projectPath: FROM, id });
      const undone = await cairn.checkpoints.save({ projectPath: FROM, summary: "Withdrawn for now", tags: ["w"] });
      await cairn.checkpoints.delete({ projectPath: FROM, id: undone.id });
      await cairn.knowledge.save({ projectPath: FROM, id: "withdrawn", question: "Withdrawn question?", answer: "Withdrawn answer." });
      await cairn.knowledge.feedback({ projectPath: FROM, id: "withdrawn", success: true });
      await cairn.knowledge.delete({ projectPath: FROM, id: "withdrawn" });
      await cairn.checkpoints.save({ projectPath: "/home/me/neighbour", summary: "Nobody else's business" });
    });
    afterAll(async () => {
      await cairn.close();
      await elsewhere.close();
      rmSync(folder, { recursive: true, force: true });
    });

    const all = async (from: Cairn, projectPath: string) => {
      let page = await from.checkpoints.list({ projectPath, limit: 100 });
      const checkpoints = [...page.checkpoints];
      while (page.nextCursor !== undefined) {
        page = await from.checkpoints.list({ projectPath, limit: 100, cursor: page.nextCursor });
        checkpoints.push(...page.checkpoints);
      }
      expect(checkpoints.length).toBe(page.total);
      return checkpoints.map(({ projectPath: _, revision: __, ...rest }) => rest);
    };

    it("is one sound file for its owner, without secrets, the neighbours and what was purged", async () => {
      await cairn.transfer.export({ projectPath: FROM, file: path("one.db") });
      expect(statSync(path("one.db")).mode & 0o777).toBe(0o600);
      expect(readdirSync(folder).filter((file) => file.startsWith("one.db") || file.startsWith(".cairn"))).toEqual(["one.db"]);
      const bytes = readFileSync(path("one.db"), "latin1");
      for (const { secret, kind } of planted)
        for (const line of secret.split(/\n|\\n/)) expect(line.length > 8 && bytes.includes(line), kind).toBe(false);
      expect(bytes).not.toContain("Nobody else");
      expect(bytes).not.toContain("Regretted");
      expect(bytes).toContain("Step 17"); // the search would have found one
    });

    it("carries deleted records, which stay deleted and can be restored, unless they are left out", async () => {
      await cairn.transfer.export({ projectPath: FROM, file: path("with.db") });
      await cairn.transfer.export({ projectPath: FROM, file: path("without.db"), withoutDeleted: true });
      expect(readFileSync(path("with.db"), "latin1")).toContain("Withdrawn for now");
      expect(readFileSync(path("without.db"), "latin1")).not.toContain("Withdrawn");
      const [to, bare] = ["/somewhere/withdrawn", "/somewhere/bare"];
      await elsewhere.transfer.import({ projectPath: to, file: path("with.db") });
      await elsewhere.transfer.import({ projectPath: to, file: path("with.db") });
      await elsewhere.transfer.import({ projectPath: bare, file: path("with.db"), withoutDeleted: true });
      expect((await elsewhere.checkpoints.list({ projectPath: bare, deleted: true })).total).toBe(0);
      const { checkpoints, total } = await elsewhere.checkpoints.list({ projectPath: to, deleted: true });
      expect(total).toBe(1);
      const [there] = (await cairn.checkpoints.list({ projectPath: FROM, deleted: true })).checkpoints;
      expect(checkpoints[0]).toMatchObject({ id: there!.id, summary: "Withdrawn for now", tags: ["w"], deletedAt: there!.deletedAt });
      expect(
        (await elsewhere.checkpoints.search({ projectPath: to, query: "Withdrawn for now" })).hits.map(({ record }) => record.id),
      ).not.toContain(there!.id);
      expect(await elsewhere.checkpoints.restore({ projectPath: to, id: there!.id })).toMatchObject({ summary: "Withdrawn for now" });
      expect(await elsewhere.knowledge.restore({ projectPath: to, id: "withdrawn" })).toMatchObject({ uses: 1, successes: 1 });
    });

    it("is taken over under another path by SQLite, and by the storage it came from, exactly and only once", async () => {
      for (const [target, projectPath] of [
        [elsewhere, "/somewhere/else"],
        [cairn, "/home/me/twin"],
      ] as const) {
        const first = await target.transfer.import({ projectPath, file: path("one.db") });
        const none = { present: 0, failed: 0, problems: [] };
        expect(first).toEqual({
          from: FROM,
          code: "not imported",
          checkpoints: { imported: COUNT + planted.length + 1, ...none },
          knowledge: { imported: 106, ...none },
        });
        expect(await all(target, projectPath)).toEqual(await all(cairn, FROM));
        const { contentHash, ...known } = await cairn.knowledge.get({ projectPath: FROM, id: "k7" });
        expect(await target.knowledge.get({ projectPath, id: "k7" })).toEqual({ ...known, contentHash });
        expect(known).toMatchObject({ uses: 3, successes: 2 });
        const { hits } = await target.checkpoints.search({ projectPath, query: "Step 17: ümlaut ☃", mode: "semantic", topK: 1 });
        expect(hits[0]?.score).toBeGreaterThan(0.99); // vectors were made on the way in

        const again = await target.transfer.import({ projectPath, file: path("one.db") });
        expect([again.checkpoints, again.knowledge]).toMatchObject([
          { imported: 0, present: COUNT + planted.length + 1 },
          { imported: 0, present: 106 },
        ]);
      }
    });

    it("is taken over from SQLite", async () => {
      await elsewhere.transfer.export({ projectPath: "/somewhere/else", file: path("back.db") });
      const { checkpoints, from } = await cairn.transfer.import({ projectPath: "/home/me/back", file: path("back.db") });
      expect([from, checkpoints.imported]).toEqual(["/somewhere/else", COUNT + planted.length + 1]);
      expect(await all(cairn, "/home/me/back")).toEqual(await all(cairn, FROM));
    });

    it("is whole while others write", async () => {
      let writing = true;
      const write = async () => {
        for (let i = 0; writing; i++) {
          await cairn.checkpoints.save({ projectPath: "/home/me/busy", summary: `Busy ${i}` });
          await new Promise((resolve) => setTimeout(resolve, 2));
        }
      };
      await cairn.checkpoints.save({ projectPath: "/home/me/busy", summary: "The first" });
      const writers = Promise.all([write(), write()]);
      try {
        for (let round = 0; round < 2; round++) {
          const before = (await cairn.checkpoints.list({ projectPath: "/home/me/busy" })).total;
          await cairn.transfer.export({ projectPath: "/home/me/busy", file: path(`busy${round}.db`) });
          const after = (await cairn.checkpoints.list({ projectPath: "/home/me/busy" })).total;
          const { checkpoints } = await elsewhere.transfer.import({ projectPath: `/busy/${round}`, file: path(`busy${round}.db`) });
          expect(checkpoints.imported).toBeGreaterThanOrEqual(before);
          expect(checkpoints.imported).toBeLessThanOrEqual(after + 2); // a save that is stored but not yet answered
        }
      } finally {
        writing = false;
        await writers;
      }
    });

    it("carries what all projects share", async () => {
      await cairn.knowledge.save({ scope: "shared", id: "s", kind: "skill", question: "How?", answer: "So." });
      await cairn.transfer.export({ projectPath: "shared", file: path("shared.db") });
      expect((await elsewhere.transfer.import({ projectPath: "shared", file: path("shared.db") })).knowledge.imported).toBe(1);
      expect((await elsewhere.knowledge.get({ scope: "shared", id: "s" })).answer).toBe("So.");
      await expect(elsewhere.transfer.import({ projectPath: "shared", file: path("one.db") })).rejects.toMatchObject({
        code: "invalid_input",
      });
    });

    it("is not written over a file, nor for a project that is not there, and leaves nothing behind when it is stopped", async () => {
      await expect(cairn.transfer.export({ projectPath: FROM, file: path("one.db") })).rejects.toMatchObject({ code: "conflict" });
      await expect(cairn.transfer.export({ projectPath: "/never", file: path("none.db") })).rejects.toMatchObject({ code: "not_found" });
      await expect(cairn.transfer.export({ projectPath: FROM, file: path("no/folder.db") })).rejects.toMatchObject({ code: "not_found" });
      const stopped = { signal: AbortSignal.abort(new Error("stopped")) };
      await expect(cairn.transfer.export({ projectPath: FROM, file: path("stopped.db") }, stopped)).rejects.toThrow(/stopped/);
      await expect(cairn.transfer.import({ projectPath: FROM, file: path("one.db") }, stopped)).rejects.toThrow(/stopped/);
      const stop = new AbortController();
      const underWay = cairn.transfer.export({ projectPath: FROM, file: path("stopped.db") }, { signal: stop.signal });
      setImmediate(() => stop.abort(new Error("stopped on its way")));
      await expect(underWay).rejects.toThrow(/on its way/);
      expect(readdirSync(folder).filter((file) => /^none|^stopped|^\.cairn/.test(file))).toEqual([]);
    });
  });
}
