import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { journalStorage } from "../../examples/own-store/journal-storage.ts";
import { open } from "../../src/index.ts";
import type { CatalogueOptions, Storage } from "../../src/ports/storage.ts";
import { memoryStorage, storageContract } from "../../src/testing/index.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-own-storage-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the storage of docs/adding-a-store.md", async () => {
  const storage = await journalStorage(join(folder, "contract"));
  afterAll(() => storage.close());
  for (const { name, run } of storageContract({ storage: () => storage, openAgain: "not possible" })) it(name, run);

  it("returns what was saved after it is closed and opened again", async () => {
    const projectPath = "/home/me/app";
    const saveThenList = async (summary: string) => {
      const own = await journalStorage(join(folder, "reopened"));
      const cairn = await open({ storage: own, dataDir: folder });
      await cairn.checkpoints.save({ projectPath, summary });
      const { checkpoints } = await cairn.checkpoints.list({ projectPath });
      await cairn.close();
      await own.close();
      return checkpoints.map((checkpoint) => checkpoint.summary);
    };
    expect(await saveThenList("first")).toEqual(["first"]);
    expect(await saveThenList("second")).toEqual(["second", "first"]);
  });
});

/** Counts its closings; its methods are on the prototype, as those of most classes are. */
class ClassStorage implements Storage {
  readonly #memory = memoryStorage();
  closed = 0;
  create(projectId: string) {
    return this.#memory.create(projectId);
  }
  find(projectId: string) {
    return this.#memory.find(projectId);
  }
  projects() {
    return this.#memory.projects();
  }
  catalogue(options?: CatalogueOptions) {
    return this.#memory.catalogue(options);
  }
  sizeBytes(projectId: string) {
    return this.#memory.sizeBytes(projectId);
  }
  checkProject(projectId: string) {
    return this.#memory.checkProject(projectId);
  }
  checkRecords(projectId: string) {
    return this.#memory.checkRecords(projectId);
  }
  repairRecords(projectId: string) {
    return this.#memory.repairRecords(projectId);
  }
  quarantine(projectId: string, problems: readonly string[]) {
    return this.#memory.quarantine(projectId, problems);
  }
  remove(projectId: string) {
    return this.#memory.remove(projectId);
  }
  check() {
    return this.#memory.check();
  }
  async close() {
    this.closed++;
  }
}

describe("open({ storage }) with a storage of your own", () => {
  it("stores projects in it, and leaves it open", async () => {
    const storage = new ClassStorage();
    const cairn = await open({ storage, dataDir: join(folder, "class"), stateDir: join(folder, "state") });
    const projectPath = "/home/me/app";
    const { id } = await cairn.checkpoints.save({ projectPath, summary: "Parser done" });
    await cairn.knowledge.save({ projectPath, kind: "faq", question: "Where is the parser?", answer: "In src/parser.ts." });
    expect((await (await storage.find(projectPath))?.checkpoints.get(id))?.summary).toBe("Parser done");
    expect(await cairn.projects()).toEqual([projectPath]);
    await cairn.check();
    await cairn.close();
    expect(storage.closed).toBe(0);
  });

  it("refuses backups and migrations with a message that fits", async () => {
    const cairn = await open({ storage: memoryStorage(), dataDir: join(folder, "refused"), stateDir: join(folder, "state") });
    await expect(cairn.backups.create("all")).rejects.toMatchObject({ code: "conflict", message: expect.stringMatching(/of your own/) });
    const migration = cairn.migrations.migrate({ which: "all", to: "postgres://localhost/cairn" });
    await expect(migration).rejects.toMatchObject({ code: "conflict", message: expect.stringMatching(/SQLite and PostgreSQL/) });
    await cairn.close();
  });
});
