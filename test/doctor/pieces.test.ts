import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import { projectDatabaseName } from "../../src/model/ids.ts";
import { openSqlite } from "../../src/stores/sqlite/driver/driver.ts";
import { longDescription, TOPICS } from "../recall/long-records.ts";
import { postgresWanted, type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { type TestEmbedder, testEmbedder } from "../support/embedders.ts";

const projectPath = "/srv/doctor-pieces";
const ref = { projectPath, collection: "checkpoints" as const };

describe.each(["sqlite", ...(postgresWanted ? ["postgres"] : [])])("doctor and the pieces of records on %s", (kind) => {
  let dataDir: string;
  let database: TestDatabase | undefined;
  let cairn: Cairn;
  let embedder: TestEmbedder;
  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), "cairn-doctor-pieces-"));
    database = kind === "postgres" ? await testDatabase() : undefined;
    embedder = testEmbedder();
    cairn = await open({ storage: database?.url ?? kind, dataDir, embedder: [embedder], doctor: { embeddingBacklogMax: 3 } });
    await cairn.checkpoints.save({ projectPath, summary: "long", description: longDescription() });
    await cairn.checkpoints.save({ projectPath, summary: "short" });
    await cairn.embeddings.verify(ref);
  });
  afterEach(async () => {
    await cairn.close();
    await database?.drop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  async function sql(text: string): Promise<void> {
    if (database) {
      const client = new pg.Client({
        connectionString: database.url,
        options: `-c search_path=${projectDatabaseName(projectPath)},public`,
      });
      await client.connect();
      await client.query(text);
      return client.end();
    }
    const file = await openSqlite({ path: join(dataDir, "projects", `${projectDatabaseName(projectPath)}.db`) });
    await file.write((tx) => tx.exec(text));
    file.close();
  }
  const problems = async () => (await cairn.doctor.examine({ quick: false })).findings.map(({ check }) => check);
  const counts = async () => (await cairn.embeddings.list(ref))[0]!;

  it("reports nothing where every record has its pieces", async () => {
    expect(await problems()).toEqual([]);
  });

  it("repairs a wrong number of pieces, and verify embeds the missing ones", async () => {
    await sql("UPDATE checkpoints SET pieces = 2 WHERE summary = 'long'");
    expect(await problems()).toContain("records");
    await cairn.doctor.examine({ repair: true });
    expect(await problems()).toEqual([]);
    await cairn.embeddings.verify(ref);
    expect(await counts()).toMatchObject({ records: 2, vectors: 2, parts: TOPICS.length, partVectors: TOPICS.length });
  });

  it("removes vectors that belong to no piece", async () => {
    await sql("UPDATE checkpoints SET pieces = 5 WHERE summary = 'short'");
    await cairn.embeddings.verify(ref);
    expect((await counts()).partVectors).toBe(TOPICS.length + 4);
    await cairn.doctor.examine({ repair: true });
    expect(await counts()).toMatchObject({ records: 2, vectors: 2, parts: TOPICS.length, partVectors: TOPICS.length });
    expect(await problems()).toEqual([]);
  });

  it("counts parts that have no vector yet", async () => {
    embedder.mood = "down"; // no further background pass; one that has embedded already may still write
    await vi.waitFor(
      async () => {
        await sql("DELETE FROM vectors WHERE key % 16 > 2");
        const { findings } = await cairn.doctor.examine();
        expect(findings.filter(({ check }) => check === "embeddings")).toMatchObject([
          { message: expect.stringContaining(`0 records and ${TOPICS.length - 2} parts of long records have no vector yet`) },
        ]);
      },
      { timeout: 120_000 },
    );
    embedder.mood = "well";
    expect(await cairn.embeddings.verify(ref)).toMatchObject({ missing: 0 });
    expect(await problems()).toEqual([]);
  });
});
