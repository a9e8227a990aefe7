import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import { projectDatabaseName } from "../../src/model/ids.ts";
import { invoke, LOCAL_CALLER } from "../../src/operations/invoke.ts";
import { operations } from "../../src/operations/list.ts";
import { openSqlite } from "../../src/stores/sqlite/driver/driver.ts";
import { postgresWanted, type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { testEmbedder } from "../support/embedders.ts";

const projectPath = "/home/someone/damaged";
const other = "/home/someone/other";

describe.each(["sqlite", ...(postgresWanted ? ["postgres"] : [])])("damaged records on %s", (kind) => {
  let cairn: Cairn;
  let dataDir: string;
  let database: TestDatabase | undefined;
  let ids: string[];
  const knowledge = { projectPath, collection: "knowledge" } as const;

  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), "cairn-damaged-"));
    database = kind === "postgres" ? await testDatabase() : undefined;
    cairn = await open({ storage: database?.url ?? "sqlite", dataDir, embedder: [testEmbedder()] });
    ids = [];
    for (const step of ["first", "second", "third"]) {
      const saved = await cairn.checkpoints.save({ projectPath, summary: `The ${step} step of the parser`, tags: [step, "Wip"] });
      ids.push(saved.id);
    }
    await cairn.knowledge.save({ projectPath, id: "release", question: "How do we release?", answer: "Push the tag." });
    await cairn.knowledge.save({ projectPath, id: "econn", kind: "remediation", question: "ECONNREFUSED 5432", answer: "Start it." });
    await cairn.checkpoints.save({ projectPath: other, summary: "The parser of another project" });
  });
  afterEach(async () => {
    await cairn.close();
    await database?.drop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  /** Changes rows behind Cairn's back. */
  async function sql(text: string, project = projectPath): Promise<Record<string, unknown>[]> {
    const name = projectDatabaseName(project);
    if (database) {
      const client = new pg.Client({ connectionString: database.url, options: `-c search_path=${name},public` });
      await client.connect();
      try {
        return (await client.query(text)).rows;
      } finally {
        await client.end();
      }
    }
    const file = await openSqlite({ path: join(dataDir, "projects", `${name}.db`) });
    try {
      return await file.write((tx) => {
        if (text.startsWith("PRAGMA")) tx.exec(text);
        else return tx.all<Record<string, unknown>>(text);
        return [];
      });
    } finally {
      file.close();
    }
  }
  const damageOf = (id: string) => `WHERE id = '${id}'`;

  it("do not count against the records that prune keeps", async () => {
    await sql(`UPDATE checkpoints SET token_count = token_count + 1 ${damageOf(ids[2]!)}`);
    expect(await cairn.checkpoints.prune({ projectPath, keepLast: 2 })).toMatchObject({ matched: 0, deleted: 0 });
    expect((await cairn.checkpoints.list({ projectPath })).checkpoints.map(({ id }) => id)).toEqual([ids[1], ids[0]]);
  });

  const DAMAGE: Record<string, (id: string) => string> = {
    "a text that was altered": (id) => `UPDATE checkpoints SET summary = 'The second stop of the parser' ${damageOf(id)}`,
    "a context that is not JSON": (id) => `UPDATE checkpoints SET context = '{"a' ${damageOf(id)}`,
    "another token count": (id) => `UPDATE checkpoints SET token_count = token_count + 1 ${damageOf(id)}`,
    "another time": (id) => `UPDATE checkpoints SET updated_at = '2020-01-01T00:00:00.000Z' ${damageOf(id)}`,
    "a forged checksum": (id) => `UPDATE checkpoints SET checksum = '${"0".repeat(64)}' ${damageOf(id)}`,
    ...(kind === "sqlite"
      ? {
          "bytes where text belongs": (id: string) => `UPDATE checkpoints SET summary = x'00ff' ${damageOf(id)}`,
          "text that is not UTF-8": (id: string) => `UPDATE checkpoints SET description = CAST(x'61ff62' AS TEXT) ${damageOf(id)}`,
          "a time that is none": (id: string) => `UPDATE checkpoints SET created_at = '2026-02-30' ${damageOf(id)}`,
          "text where a number belongs": (id: string) => `UPDATE checkpoints SET revision = 'one' ${damageOf(id)}`,
          "a number beyond JavaScript's": (id: string) => `UPDATE checkpoints SET token_count = 9223372036854775807 ${damageOf(id)}`,
          "a lost tag": (id: string) =>
            `DELETE FROM checkpoint_tags WHERE position = 0 AND checkpoint_key = (SELECT key FROM checkpoints ${damageOf(id)})`,
        }
      : {
          "an infinite time": (id: string) => `UPDATE checkpoints SET created_at = 'infinity' ${damageOf(id)}`,
          "a tag that is null": (id: string) => `UPDATE checkpoints SET tags = ARRAY['second', NULL] ${damageOf(id)}`,
        }),
  };

  it.each(Object.keys(DAMAGE))("skips and reports a record with %s, and sets it aside", async (what) => {
    const id = ids[1]!;
    await sql(DAMAGE[what]!(id));
    const reported = [expect.objectContaining({ id, reason: expect.any(String) })];

    const page = await cairn.checkpoints.list({ projectPath });
    expect(page.checkpoints.map((one) => one.id)).toEqual([ids[2], ids[0]]);
    expect(page).toMatchObject({ damaged: reported, total: 3 });
    const answer = await cairn.checkpoints.search({ projectPath, query: "step of the parser" });
    expect(answer.hits.map(({ record }) => record.id).sort()).toEqual([ids[0], ids[2]].sort());
    expect(answer.damaged).toEqual(reported);
    const everywhere = await cairn.checkpoints.searchAll({ query: "parser", mayTouch: () => true });
    expect(new Set(everywhere.hits.map(({ record }) => record.projectPath))).toEqual(new Set([projectPath, other]));
    expect(everywhere).toMatchObject({ damaged: [{ id, projectPath }], degraded: [] });
    await expect(cairn.checkpoints.get({ projectPath, id })).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringMatching(/is damaged: .*cairn doctor --repair/),
    });
    await expect(cairn.checkpoints.update({ projectPath, id, tags: [] })).rejects.toMatchObject({ code: "conflict" });
    expect((await cairn.checkpoints.resume({ projectPath })).checkpoint.id).toBe(ids[2]);
    await cairn.stats.read({ mayTouch: () => true });

    expect(await cairn.databases.check({ projectPath })).toMatchObject({ state: "damaged", problems: [], damaged: reported });
    const before = await cairn.doctor.examine();
    expect(before.healthy).toBe(false);
    expect(before.findings).toContainEqual(
      expect.objectContaining({ check: "records", subject: `project ${projectPath}`, command: "cairn doctor --repair" }),
    );
    expect(await cairn.embeddings.verify({ projectPath, collection: "checkpoints" })).toMatchObject({ damagedRecords: reported });

    const { repairs, findings } = await cairn.doctor.examine({ repair: true });
    expect(repairs).toMatchObject([{ subject: `project ${projectPath}`, quarantined: [{ collection: "checkpoints", id }] }]);
    expect(findings.filter(({ check }) => check === "records")).toMatchObject([{ severity: "note" }]);
    const row = (await sql("SELECT record_id, reason, raw FROM quarantined_records"))[0] as { record_id: string; raw: string };
    expect(row.record_id).toBe(id);
    expect(JSON.parse(row.raw).row).toMatchObject({ id });
    const after = await cairn.checkpoints.list({ projectPath });
    expect(after).toMatchObject({ damaged: [], total: 2 });
    expect(await cairn.databases.check({ projectPath })).toMatchObject({ state: "sound", quarantined: 1 });
    await expect(cairn.checkpoints.get({ projectPath, id })).rejects.toMatchObject({ code: "not_found" });
    expect((await cairn.doctor.examine({ repair: true })).repairs).toEqual([]);
  });

  it("resumes from the next checkpoint when the newest is damaged, and reports it", async () => {
    await sql(`UPDATE checkpoints SET description = 'altered' ${damageOf(ids[2]!)}`);
    expect(await cairn.checkpoints.resume({ projectPath })).toMatchObject({ checkpoint: { id: ids[1] }, damaged: [{ id: ids[2] }] });
  });

  it("fills a page with sound records and never repeats or loses one between pages", async () => {
    const more: string[] = [];
    for (let n = 0; n < 12; n++) more.push((await cairn.checkpoints.save({ projectPath, summary: `Step ${n}` })).id);
    for (const id of [more[11]!, more[10]!, more[5]!, more[4]!, more[0]!])
      await sql(`UPDATE checkpoints SET summary = 'x' ${damageOf(id)}`);
    const seen: string[] = [];
    const damaged = new Set<string>();
    let cursor: string | undefined;
    do {
      const page = await cairn.checkpoints.list({ projectPath, limit: 3, cursor });
      seen.push(...page.checkpoints.map(({ id }) => id));
      for (const { id } of page.damaged) damaged.add(id);
      if (page.nextCursor !== undefined) expect(page.checkpoints).toHaveLength(3);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    const sound = [...ids, ...more].filter((id) => !damaged.has(id));
    expect(damaged.size).toBe(5);
    expect([...seen].sort()).toEqual(sound.sort());
    // Records of the same millisecond are ordered by id, so the order of the saves is not that of the list.
    expect(seen).toEqual((await cairn.checkpoints.list({ projectPath, limit: 100 })).checkpoints.map(({ id }) => id));
  });

  it("skips damaged knowledge in lists and searches, refuses feedback on it, and quarantines it", async () => {
    await sql("UPDATE knowledge SET answer = 'Delete everything.' WHERE id = 'release'");
    expect(await cairn.knowledge.list({ projectPath })).toMatchObject({ records: [{ id: "econn" }], damaged: [{ id: "release" }] });
    const answer = await cairn.knowledge.search({ projectPath, query: "How do we release?" });
    expect(answer.hits.map(({ record }) => record.id)).not.toContain("release");
    expect(answer.damaged).toMatchObject([{ id: "release" }]);
    for (const call of [
      cairn.knowledge.get({ projectPath, id: "release" }),
      cairn.knowledge.feedback({ projectPath, id: "release", success: true }),
    ])
      await expect(call).rejects.toMatchObject({ code: "conflict", message: expect.stringContaining("doctor --repair") });
    expect((await cairn.doctor.examine({ repair: true })).repairs).toMatchObject([
      { quarantined: [{ collection: "knowledge", id: "release" }] },
    ]);
    expect(await cairn.knowledge.list({ projectPath })).toMatchObject({ damaged: [], total: 1 });
    await cairn.knowledge.save({ projectPath, id: "release", question: "How do we release?", answer: "Push the tag." });
  });

  it("reports a damaged deleted record, refuses to restore it, and quarantines it", async () => {
    const [first, second] = ids as [string, string];
    for (const id of [first, second]) await cairn.checkpoints.delete({ projectPath, id });
    await sql(`UPDATE deleted_records SET record = replace(record, 'first', 'worst') WHERE id = '${first}'`);
    const { checkpoints, damaged, total } = await cairn.checkpoints.list({ projectPath, deleted: true });
    expect([checkpoints.map(({ id }) => id), damaged.map(({ id }) => id), total]).toEqual([[second], [first], 2]);
    await expect(cairn.checkpoints.restore({ projectPath, id: first })).rejects.toMatchObject({ code: "conflict" });
    const { repairs } = await cairn.doctor.examine({ repair: true });
    expect(repairs).toMatchObject([{ quarantined: [{ collection: "checkpoints", id: first }] }]);
    expect(await cairn.checkpoints.list({ projectPath, deleted: true })).toMatchObject({ damaged: [], total: 1 });
    await expect(cairn.checkpoints.restore({ projectPath, id: first })).rejects.toMatchObject({ code: "not_found" });
    expect(await cairn.checkpoints.restore({ projectPath, id: second })).toMatchObject({ id: second });
  });

  it("refuses to delete a damaged record softly, and purges it", async () => {
    const id = ids[0]!;
    await sql(`UPDATE checkpoints SET summary = 'x' ${damageOf(id)}`);
    await expect(cairn.checkpoints.delete({ projectPath, id })).rejects.toMatchObject({ code: "conflict" });
    expect(await cairn.checkpoints.purge({ projectPath, id })).toEqual({ purged: true });
    expect(await cairn.checkpoints.list({ projectPath })).toMatchObject({ damaged: [], total: 2 });
  });

  it("counts feedback in the checksum, so that a count which was changed by hand is noticed", async () => {
    await Promise.all(Array.from({ length: 10 }, (_, n) => cairn.knowledge.feedback({ projectPath, id: "release", success: n % 2 === 0 })));
    expect(await cairn.knowledge.get({ projectPath, id: "release" })).toMatchObject({ uses: 10, successes: 5 });
    await sql("UPDATE knowledge SET successes = 10 WHERE id = 'release'");
    await expect(cairn.knowledge.get({ projectPath, id: "release" })).rejects.toMatchObject({ code: "conflict" });
  });

  it("does not take a damaged record for absent when it is imported again", async () => {
    const { checkpoints } = await cairn.checkpoints.list({ projectPath });
    const records = checkpoints.map(({ id, summary, createdAt }) => ({ id, summary, created_at: createdAt }));
    await sql(`UPDATE checkpoints SET summary = 'x' ${damageOf(ids[0]!)}`);
    expect(await cairn.checkpoints.import({ projectPath, records })).toMatchObject({ imported: 0, present: 3 });
  });

  it("exports the sound records of a project to a file and to another project, and names the damaged one", async () => {
    await sql(`UPDATE checkpoints SET summary = 'x' ${damageOf(ids[0]!)}`);
    const file = join(dataDir, "export.db");
    expect(await cairn.transfer.export({ projectPath, file })).toMatchObject({ damaged: [{ id: ids[0] }] });
    const taken = await cairn.transfer.import({ projectPath: "/home/someone/copy", file });
    expect(taken.checkpoints).toMatchObject({ imported: 2, failed: kind === "sqlite" ? 1 : 0 });
    expect(taken.knowledge).toMatchObject({ imported: 2, failed: 0 });
  });

  it("finds and repairs rows of embedding_records that were altered, removed or added", async () => {
    const mirror = "SELECT template_id, category, question_text, success_rate, usage_count FROM embedding_records ORDER BY template_id";
    const before = await sql(mirror);
    expect(before).toHaveLength(2);
    const changes = [
      "UPDATE embedding_records SET question_text = 'altered' WHERE template_id = 'release'",
      "UPDATE embedding_records SET usage_count = 7, success_rate = 0.9",
      "DELETE FROM embedding_records WHERE template_id = 'release'",
      "UPDATE embedding_records SET embedding_vector = (SELECT embedding_vector FROM embedding_records WHERE template_id = 'econn')",
      ...(kind === "sqlite"
        ? ["UPDATE embedding_records SET embedding_vector = x'00'", "UPDATE embedding_records SET category = x'ff', created_at = 'never'"]
        : []),
    ];
    for (const change of changes) {
      await sql(change);
      expect(await cairn.databases.check({ projectPath }), change).toMatchObject({
        state: "damaged",
        damaged: [],
        stale: [expect.stringContaining("embedding_records")],
      });
      expect((await cairn.doctor.examine()).findings, change).toContainEqual(expect.objectContaining({ check: "records" }));
      const verified = await cairn.embeddings.verify(knowledge);
      expect(verified.mirrorRepaired, change).toBeGreaterThan(0);
      expect(await sql(mirror)).toEqual(before);
      await sql(change);
      expect((await cairn.doctor.examine({ repair: true })).repairs).toMatchObject([{ quarantined: [], rebuilt: ["embedding_records"] }]);
      expect(await sql(mirror)).toEqual(before);
    }
    expect(await cairn.embeddings.verify(knowledge)).toMatchObject({ mirrorRepaired: 0, damaged: [] });
  });

  it("finds and rebuilds tags, terms and signatures that do not match their records", async () => {
    const changes =
      kind === "sqlite"
        ? [
            "UPDATE checkpoint_tags SET folded = 'nonsense'",
            "DELETE FROM checkpoint_fts WHERE rowid = 1",
            "DELETE FROM knowledge_fts",
            "UPDATE knowledge SET signature = 'nonsense' WHERE id = 'econn'",
          ]
        : [
            "UPDATE checkpoints SET folded_tags = '{nonsense}'",
            "UPDATE checkpoints SET terms = to_tsvector('nonsense')",
            "UPDATE knowledge SET terms = to_tsvector('nonsense')",
            "UPDATE knowledge SET signature = 'nonsense' WHERE id = 'econn'",
          ];
    for (const change of changes) {
      await sql(change);
      expect(await cairn.databases.check({ projectPath }), change).toMatchObject({ state: "damaged", damaged: [] });
      await cairn.doctor.examine({ repair: true });
      expect(await cairn.databases.check({ projectPath }), change).toMatchObject({ state: "sound", stale: [] });
    }
    expect((await cairn.checkpoints.list({ projectPath, tags: ["wip"] })).total).toBe(3);
    expect((await cairn.checkpoints.search({ projectPath, query: "parser", mode: "keyword" })).hits).toHaveLength(3);
    expect((await cairn.knowledge.search({ projectPath, query: "release", mode: "keyword" })).hits).toHaveLength(1);
    expect((await cairn.knowledge.search({ projectPath, query: "ECONNREFUSED 5432" })).hits[0]).toMatchObject({ sameError: true });
  });

  if (kind === "sqlite") {
    it("finds one flipped bit of a stored text in the file itself", async () => {
      await cairn.close();
      const path = join(dataDir, "projects", `${projectDatabaseName(projectPath)}.db`);
      const bytes = readFileSync(path);
      const text = Buffer.from("The second step of the parser");
      let flipped = 0;
      for (let at = bytes.indexOf(text); at !== -1; at = bytes.indexOf(text, at + 1)) {
        bytes[at + 4] = bytes[at + 4]! ^ 1;
        flipped++;
      }
      expect(flipped).toBeGreaterThan(0);
      writeFileSync(path, bytes);
      cairn = await open({ storage: "sqlite", dataDir, embedder: [testEmbedder()] });
      expect(await cairn.databases.check({ projectPath })).toMatchObject({ state: "damaged", problems: [], damaged: [{ id: ids[1] }] });
      expect((await cairn.doctor.examine({ repair: true })).repairs).toMatchObject([{ quarantined: [{ id: ids[1] }] }]);
      expect(await cairn.databases.check({ projectPath })).toMatchObject({ state: "sound" });
    });

    it("repairs a flipped bit in an indexed id, where the index and the row disagree", async () => {
      await cairn.close();
      const path = join(dataDir, "projects", `${projectDatabaseName(projectPath)}.db`);
      const bytes = readFileSync(path);
      // The row has the id followed by the summary; the index has it alone.
      const at = bytes.indexOf(Buffer.from(`${ids[1]}The second`));
      expect(at).toBeGreaterThan(0);
      bytes[at] = bytes[at]! ^ 1;
      writeFileSync(path, bytes);
      cairn = await open({ storage: "sqlite", dataDir, embedder: [testEmbedder()] });
      expect(await cairn.databases.check({ projectPath })).toMatchObject({ state: "damaged", problems: [], damaged: [{}] });
      expect((await cairn.doctor.examine({ repair: true })).repairs).toMatchObject([{ quarantined: [{}], rebuilt: ["indexes"] }]);
      expect(await cairn.databases.check({ projectPath })).toMatchObject({ state: "sound", quarantined: 1 });
    });
  }

  it("reports damaged records in every answer on the wire, and none when there are none", async () => {
    const call = (name: string, input: object) =>
      invoke(cairn, operations.find((operation) => operation.name === name)!, input, { caller: LOCAL_CALLER });
    const calls: [string, object][] = [
      ["checkpoint_list", { project_path: projectPath }],
      ["checkpoint_search", { project_path: projectPath, query: "parser" }],
      ["checkpoint_search_all", { query: "parser" }],
      ["checkpoint_export", { project_path: projectPath }],
    ];
    for (const [name, input] of calls) expect((await call(name, input)).damaged, name).toBeUndefined();
    await sql(`UPDATE checkpoints SET summary = 'x the parser' ${damageOf(ids[2]!)}`);
    for (const [name, input] of [...calls, ["checkpoint_resume", { project_path: projectPath }] as [string, object]])
      expect((await call(name, input)).damaged, name).toMatchObject([{ id: ids[2] }]);
  });
});
