import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import { openSqlite, type SqliteDatabase } from "../../src/stores/sqlite/driver/driver.ts";
import { longDescription } from "../recall/long-records.ts";
import { postgresWanted, type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { type TestEmbedder, testEmbedder } from "../support/embedders.ts";
import { templates } from "./templates.ts";

const shared = { scope: "shared" } as const;
const vectors = { projectPath: "shared", collection: "knowledge" } as const;

/** Plain SQL, as a person writes it beside Cairn. */
type Sql = (text: string) => Promise<Record<string, unknown>[]>;

describe.each(["sqlite", ...(postgresWanted ? ["postgres"] : [])])("embedding_records on %s", (kind) => {
  let cairn: Cairn;
  let embedder: TestEmbedder;
  let dataDir: string;
  let database: TestDatabase | undefined;
  let file: SqliteDatabase | undefined;
  let client: pg.Client | undefined;
  let sql: Sql;
  let storage = kind;
  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), "cairn-records-"));
    embedder = testEmbedder();
    if (kind === "postgres") {
      database = await testDatabase();
      storage = database.url;
    }
    cairn = await open({ storage, dataDir, embedder: [embedder, testEmbedder({ model: "other", dimension: 32 })] });
    await cairn.knowledge.import({ ...shared, source: "faq", records: templates(5) });
    if (database) {
      client = new pg.Client({ connectionString: database.url, options: "-c search_path=shared,public" });
      await client.connect();
      sql = async (text) => (await client!.query(text)).rows;
    } else {
      file = await openSqlite({ path: join(dataDir, "projects", "shared.db") });
      // Changes go through a write, looks through either.
      sql = async (text) => file!.write((tx) => tx.all<Record<string, unknown>>(text));
    }
  });
  afterEach(async () => {
    file?.close();
    await client?.end();
    client = undefined;
    file = undefined;
    await cairn.close();
    await database?.drop();
    rmSync(dataDir, { recursive: true });
  });
  const CURRENT =
    "SELECT er.* FROM embedding_records er JOIN embedding_versions ev ON er.version_id = ev.version_id WHERE ev.is_current ORDER BY template_id";

  it("has the documented columns, filled, with one row per record and version", async () => {
    const rows = await sql(CURRENT);
    expect(rows).toHaveLength(5);
    const { id, category, subcategory, question, answer } = templates(1)[0]!;
    expect(rows[0]).toMatchObject({ template_id: id, category, subcategory, question_text: question, answer_text: answer });
    expect(Object.keys(rows[0]!)).toEqual(
      "record_id template_id version_id embedding_vector category subcategory question_text answer_text content_hash success_rate usage_count created_at updated_at".split(
        " ",
      ),
    );
    expect(rows[0]!.content_hash).toMatch(/^[0-9a-f]{64}$/);
    expect([rows[0]!.success_rate, Number(rows[0]!.usage_count)]).toEqual([0.5, 0]);
    const bytes = rows[0]!.embedding_vector as Uint8Array | string;
    const [expected] = await embedder.embed([question]);
    const stored =
      typeof bytes === "string"
        ? Float32Array.from(JSON.parse(bytes))
        : Float32Array.from({ length: bytes.byteLength / 4 }, (_, i) =>
            new DataView(bytes.buffer, bytes.byteOffset).getFloat32(i * 4, true),
          );
    expect(stored.length).toBe(64);
    for (const [index, value] of stored.entries()) expect(value).toBeCloseTo(expected![index]!, 6);
  });

  it("follows every change: feedback, edits, deletions, upgrades and their rollback", async () => {
    await cairn.knowledge.feedback({ ...shared, id: "tmpl_001", success: true });
    await cairn.knowledge.update({ ...shared, id: "tmpl_002", answer: "Новый." });
    await cairn.knowledge.update({ ...shared, id: "tmpl_003", question: "Совсем другой вопрос?" });
    await cairn.knowledge.delete({ ...shared, id: "tmpl_004" });
    const rows = await sql(CURRENT);
    expect(rows.map(({ template_id }) => template_id)).toEqual(["tmpl_001", "tmpl_002", "tmpl_003", "tmpl_005"]);
    expect(rows[0]!.success_rate).toBeCloseTo(2 / 3, 5);
    expect(Number(rows[0]!.usage_count)).toBe(1);
    expect([rows[1]!.answer_text, rows[2]!.question_text]).toEqual(["Новый.", "Совсем другой вопрос?"]);
    await cairn.embeddings.upgrade({ ...vectors, model: "other" });
    expect(await sql("SELECT 1 AS one FROM embedding_records")).toHaveLength(8);
    await cairn.embeddings.rollback(vectors);
    await cairn.embeddings.prune(vectors);
    expect(await sql("SELECT 1 AS one FROM embedding_records")).toHaveLength(4);
  });

  it("has one row for a long record, with the vector of its whole text", async () => {
    const question = longDescription();
    const [whole] = await embedder.embed([question.slice(0, 4_000)]);
    const { id } = await cairn.knowledge.save({
      ...shared,
      kind: "faq",
      category: "long",
      question: question.slice(0, 4_000),
      answer: "a",
    });
    await expect.poll(async () => (await cairn.embeddings.list(vectors))[0]!.partVectors, { timeout: 120_000 }).toBeGreaterThan(3);
    const rows = await sql(`SELECT * FROM embedding_records WHERE template_id = '${id}'`);
    expect(rows).toHaveLength(1);
    const stored = rows[0]!.embedding_vector as Uint8Array | string;
    const first = typeof stored === "string" ? JSON.parse(stored)[0] : new DataView(stored.buffer, stored.byteOffset).getFloat32(0, true);
    expect(first).toBeCloseTo(whole![0]!, 6);
    await sql(`UPDATE vectors SET vector = ${kind === "sqlite" ? "x'00'" : "array_fill(0.5::real, ARRAY[64])::vector"} WHERE key % 16 = 2`);
    expect(await cairn.embeddings.verify(vectors)).toMatchObject({ damaged: [id], recomputed: 1, missing: 0, mirrorRepaired: 0 });
    await cairn.knowledge.delete({ ...shared, id });
    expect(await sql("SELECT 1 AS one FROM vectors WHERE key % 16 > 0")).toEqual([]);
  });

  it("holds to its constraints", async () => {
    const [{ version_id: version }] = (await sql("SELECT version_id FROM embedding_versions")) as [{ version_id: number }];
    for (const wrong of [
      "UPDATE embedding_records SET success_rate = 1.5 WHERE template_id = 'tmpl_001'",
      "UPDATE embedding_records SET success_rate = -0.1 WHERE template_id = 'tmpl_001'",
      "UPDATE embedding_records SET usage_count = -1 WHERE template_id = 'tmpl_001'",
      "UPDATE embedding_records SET content_hash = 'short' WHERE template_id = 'tmpl_001'",
      "UPDATE embedding_records SET version_id = 99 WHERE template_id = 'tmpl_001'",
      `INSERT INTO embedding_records (template_id, version_id, embedding_vector, category, subcategory, question_text, answer_text, content_hash)
         SELECT template_id, version_id, embedding_vector, category, subcategory, question_text, answer_text, content_hash FROM embedding_records LIMIT 1`,
      `DELETE FROM embedding_versions WHERE version_id = ${version}`,
      "UPDATE knowledge SET successes = 5 WHERE id = 'tmpl_001'",
    ])
      await expect(sql(wrong), wrong).rejects.toThrow();
    expect(await sql(CURRENT)).toHaveLength(5);
  });

  it("moves updated_at by itself", async () => {
    const [before] = await sql("SELECT updated_at FROM embedding_records WHERE template_id = 'tmpl_001'");
    await new Promise((resolve) => setTimeout(resolve, 5));
    await sql("UPDATE embedding_records SET usage_count = 7 WHERE template_id = 'tmpl_001'");
    const [after] = await sql("SELECT updated_at FROM embedding_records WHERE template_id = 'tmpl_001'");
    expect(String(after!.updated_at) === String(before!.updated_at) && kind === "sqlite").toBe(false);
    expect(new Date(String(after!.updated_at)).getTime()).toBeGreaterThanOrEqual(new Date(String(before!.updated_at)).getTime());
  });

  it("restarts without a single embedding call; one damaged vector is recomputed and reported", async () => {
    await cairn.close();
    const fresh = testEmbedder();
    cairn = await open({ storage, dataDir, embedder: [fresh] });
    expect(await cairn.knowledge.readiness()).toEqual({ records: 5, vectors: 5, ready: true });
    expect((await cairn.knowledge.search({ ...shared, query: "вклад", mode: "keyword" })).hits[0]!.record.id).toBe("tmpl_001");
    expect(fresh.calls).toBe(0);
    const damage = kind === "sqlite" ? "x'00'" : "array_fill(0.5::real, ARRAY[64])::vector";
    await sql(`UPDATE vectors SET vector = ${damage} WHERE key = (SELECT 16 * key FROM knowledge WHERE id = 'tmpl_003')`);
    const calls = fresh.calls;
    expect(await cairn.embeddings.verify(vectors)).toEqual({
      ...{ checked: 5, damaged: ["tmpl_003"], recomputed: 1, missing: 0 },
      ...{ mirrorRepaired: 0, damagedRecords: [] },
    });
    expect(fresh.calls).toBe(calls + 1);
    expect((await cairn.knowledge.search({ ...shared, query: templates(3)[2]!.question })).hits[0]!.record.id).toBe("tmpl_003");
    expect(await cairn.embeddings.verify(vectors)).toMatchObject({ damaged: [], recomputed: 0 });
    expect(await sql(CURRENT)).toHaveLength(5);
  });

  it("answers in spite of a damaged vector, and computes by itself what is missing", async () => {
    await sql(
      `UPDATE vectors SET vector = ${kind === "sqlite" ? "x'00'" : "array_fill(0.5::real, ARRAY[64])::vector"} WHERE key = (SELECT 16 * key FROM knowledge WHERE id = 'tmpl_003')`,
    );
    expect((await cairn.knowledge.search({ ...shared, query: templates(3)[2]!.question })).hits.length).toBeGreaterThan(0);
    await sql("DELETE FROM vectors WHERE key = (SELECT 16 * key FROM knowledge WHERE id = 'tmpl_002')");
    await cairn.close();
    cairn = await open({ storage, dataDir, embedder: [embedder] });
    expect((await cairn.knowledge.readiness()).ready).toBe(false);
    await cairn.knowledge.search({ ...shared, query: "вклад" });
    await expect.poll(async () => (await cairn.knowledge.readiness()).ready).toBe(true);
    expect(await sql(CURRENT)).toHaveLength(5);
  });
});
