import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import { projectDatabaseName, systemClock } from "../../src/model/ids.ts";
import type { Storage } from "../../src/ports/storage.ts";
import { openSqlite } from "../../src/stores/sqlite/driver/driver.ts";
import { sqliteStorage } from "../../src/stores/sqlite/storage.ts";
import { testEmbedder } from "../support/embedders.ts";

let dataDir: string;
let cairn: Cairn;
let storage: Storage;
const embedder = testEmbedder();
const LOST_NOTHING = { rows: 0, terms: 0, vectors: 0 };

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "cairn-reindex-"));
  cairn = await open({ dataDir, embedder: [embedder] });
  storage = sqliteStorage({ dataDir, now: systemClock });
});
afterAll(async () => {
  await cairn.close();
  await storage.close();
  rmSync(dataDir, { recursive: true });
});

const PATHS = ["a.txt", "b.txt", "lib/c.txt", "lib/d.txt"];
/** Long enough that a few paragraphs make several chunks. */
const paragraph = (word: string) => `${word} ${"words of a paragraph ".repeat(60)}\n\n`;
const content = fc.array(fc.constantFrom("apple", "pear", "plum"), { maxLength: 4 }).map((words) => words.map(paragraph).join(""));
const step = fc.oneof(
  fc.record({ type: fc.constant("write" as const), path: fc.constantFrom(...PATHS), content }),
  fc.record({ type: fc.constant("rename" as const), from: fc.constantFrom(...PATHS), to: fc.constantFrom(...PATHS), edit: fc.boolean() }),
  fc.record({ type: fc.constant("finish" as const), gone: fc.constantFrom(...PATHS) }),
  fc.record({ type: fc.constant("down" as const), path: fc.constantFrom(...PATHS), content }),
);

let runs = 0;

describe("random re-indexes", () => {
  it("leave exactly the files that are there, and nothing behind in rows, words and vectors", { timeout: 1_800_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 12 }), async (steps) => {
        const projectPath = `/property/${runs++}`;
        const tree = new Map<string, string>();
        for (const one of steps) {
          if (one.type === "write" || one.type === "down") {
            embedder.mood = one.type === "down" ? "down" : "well";
            tree.set(one.path, one.content);
            await cairn.code.indexBatch({ projectPath, files: [{ path: one.path, content: one.content }] });
            embedder.mood = "well";
          } else if (one.type === "rename") {
            const { from, to, edit } = one;
            if (from === to || !tree.has(from) || tree.has(to)) continue;
            tree.set(to, tree.get(from)! + (edit ? paragraph("edited") : ""));
            tree.delete(from);
            await cairn.code.indexBatch({ projectPath, files: [{ path: to, content: tree.get(to)! }], renames: [{ from, to }] });
          } else {
            tree.delete(one.gone);
            if (tree.size > 0) await cairn.code.finish({ projectPath, manifest: [...tree.keys()] });
            else await cairn.code.clean({ projectPath });
          }
        }
        const store = (await storage.find(projectPath))?.code;
        if (!store) return;
        expect((await store.files()).map(({ path }) => path)).toEqual([...tree.keys()].sort());
        for (const [path, expected] of tree) {
          const stored = (await store.chunksOf(path)).map(({ text }) => text).join("");
          expect(stored).toBe(expected);
        }
        expect(await store.orphans()).toEqual(LOST_NOTHING);
        await cairn.embeddings.verify({ projectPath, collection: "code" });
        const current = (await store.embeddings.versions()).find(({ isCurrent }) => isCurrent);
        if (current) {
          const { records, vectors } = await store.embeddings.counts(current.versionId);
          expect(vectors).toBe(records);
        }
        for (const word of ["apple", "edited"]) {
          const { keyword } = await store.candidates({ filter: {}, limit: 100, text: word });
          const found = new Set((await store.getMany(keyword.map(({ id }) => id))).map(({ path }) => path));
          expect([...found].sort()).toEqual(
            [...tree]
              .filter(([, text]) => text.includes(word))
              .map(([path]) => path)
              .sort(),
          );
        }
      }),
      { numRuns: process.env.CAIRN_SOAK === "1" ? 200 : 15 },
    );
  });

  it("put right at the next start what somebody broke with SQL", async () => {
    const projectPath = "/property/broken";
    const files = ["a.txt", "b.txt", "c.txt"].map((path) => ({ path, content: paragraph("apple") + paragraph("pear") + path }));
    await cairn.code.indexBatch({ projectPath, files });
    const db = await openSqlite({ path: join(dataDir, "projects", `${projectDatabaseName(projectPath)}.code.db`) });
    await db.write((tx) => {
      tx.run("DELETE FROM code_chunks WHERE file_key = (SELECT file_key FROM indexed_files WHERE file_path = 'a.txt')");
      tx.run("DELETE FROM indexed_files WHERE file_path = 'b.txt'");
    });
    db.close();
    const store = (await storage.find(projectPath))!.code;
    const broken = await store.orphans();
    expect(broken.rows).toBeGreaterThan(0);
    expect(broken.terms).toBeGreaterThan(0);
    expect(broken.vectors).toBeGreaterThan(0);
    const again = await open({ dataDir, embedder: [embedder] });
    const outcome = await again.code.indexBatch({ projectPath, files });
    await again.close();
    expect(outcome.files.map(({ status }) => status)).toEqual(["indexed", "indexed", "unchanged"]);
    expect(await store.orphans()).toEqual(LOST_NOTHING);
    expect((await store.chunksOf("a.txt")).map(({ text }) => text).join("")).toBe(files[0]!.content);
  });
});
