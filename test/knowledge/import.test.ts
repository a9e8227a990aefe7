import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Cairn, open } from "../../src/index.ts";
import { readLabelled, readRecords } from "../../src/knowledge/read-records.ts";
import { postgresWanted, type TestDatabase, testDatabase } from "../setup/postgres.ts";
import { type TestEmbedder, testEmbedder } from "../support/embedders.ts";
import { templates } from "./templates.ts";

const place = { scope: "shared", source: "faq.csv" } as const;

describe.each(["memory", "sqlite", ...(postgresWanted ? ["postgres"] : [])])("importing knowledge on %s", (kind) => {
  let cairn: Cairn;
  let embedder: TestEmbedder;
  let dataDir: string;
  let database: TestDatabase | undefined;
  let storage = kind;
  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), "cairn-import-"));
    embedder = testEmbedder();
    if (kind === "postgres") {
      database = await testDatabase();
      storage = database.url;
    }
    cairn = await open({ storage, dataDir, embedder: [embedder] });
  });
  afterEach(async () => {
    await cairn.close();
    await database?.drop();
    rmSync(dataDir, { recursive: true });
  });
  const run = (records: ReturnType<typeof templates>, more = {}) => cairn.knowledge.import({ ...place, records, ...more });
  const total = async () => (await cairn.knowledge.list({ scope: "shared" })).total;

  it("takes 201 templates, then embeds only what changed", async () => {
    const first = templates(201);
    expect(await run(first)).toMatchObject({
      added: 201,
      changed: 0,
      removed: 0,
      unchanged: 0,
      embeddingCalls: 201,
      embeddingCallsSaved: 0,
    });
    expect(await run(first)).toMatchObject({
      added: 0,
      changed: 0,
      removed: 0,
      unchanged: 201,
      embeddingCalls: 0,
      embeddingCallsSaved: 201,
    });
    await cairn.knowledge.feedback({ scope: "shared", id: first[3]!.id, success: true });
    const edited = first.slice(2).map((record, index) => {
      if (index === 0) return { ...record, question: `${record.question} Правда?` };
      if (index === 1) return { ...record, answer: "Иначе." };
      return index === 2 ? { ...record, category: "Другое" } : record;
    });
    const more = templates(203).slice(201);
    const before = embedder.calls;
    const changes = { added: 2, changed: 3, removed: 2, unchanged: 196 };
    expect(await run([...edited, ...more], { dryRun: true })).toMatchObject({ ...changes, dryRun: true, embeddingCalls: 0 });
    expect([await total(), embedder.calls]).toEqual([201, before]);
    expect(await run([...edited, ...more])).toMatchObject({ ...changes, embeddingCalls: 3, embeddingCallsSaved: 198 });
    expect([await total(), embedder.calls]).toEqual([201, before + 3]);
    expect(await cairn.knowledge.get({ scope: "shared", id: first[3]!.id })).toMatchObject({
      answer: "Иначе.",
      uses: 1,
      successes: 1,
      revision: 2,
    });
    expect(await run([...edited, ...more], { force: true })).toMatchObject({ unchanged: 201, embeddingCallsSaved: 0 });
    expect(await run(more, { keepMissing: true })).toMatchObject({ removed: 0, unchanged: 2 });
    expect(await cairn.knowledge.readiness()).toEqual({ records: 201, vectors: 201, ready: true });
  });

  it("keeps the times of the file, and sorts a time in the future as now", async () => {
    const content = JSON.stringify([
      { id: "old", question: "Q1", answer: "A", created_at: "2020-01-01T01:00:00+01:00", updated_at: "2021-01-01T00:00:00Z" },
      { id: "future", question: "Q2", answer: "A", created_at: "2999-01-01T00:00:00Z" },
      { id: "plain", question: "Q3", answer: "A" },
    ]);
    const { records, ignored } = await readRecords(content, "json", "faq");
    expect(ignored).toEqual([]);
    await run(records as ReturnType<typeof templates>);
    await cairn.knowledge.save({ scope: "shared", id: "later", question: "Q4", answer: "A" });
    const { records: stored } = await cairn.knowledge.list({ scope: "shared" });
    expect(stored.map(({ id }) => id)).toEqual(["later", "future", "plain", "old"]);
    expect(stored.at(-1)).toMatchObject({ createdAt: "2020-01-01T00:00:00.000Z", updatedAt: "2021-01-01T00:00:00.000Z" });
    expect(await run(records as ReturnType<typeof templates>)).toMatchObject({ added: 0, changed: 0, unchanged: 3 });
    await expect(readRecords('[{"question":"Q","answer":"A","created_at":"yesterday"}]', "json", "faq")).rejects.toThrow(/created_at/);
  });

  it("finds a template by its question, and measures it", async () => {
    const records = templates(60);
    const labelled = [...records.slice(0, 9).map(({ question, id }) => ({ query: question, id })), { query: "нет такого", id: "никакой" }];
    const { validation } = await run(records, { labelled });
    expect(validation).toMatchObject({ questions: 10, top1: 0.9, top3: 0.9, top5: 0.9, missed: [{ expected: "никакой" }] });
  });

  it("imports without vectors while the provider is down, and they follow", async () => {
    const records = templates(40);
    await run(records.slice(0, 1));
    embedder.mood = "down";
    expect(await run(records)).toMatchObject({ added: 39, embeddingCalls: 0, embeddingPending: 39 });
    expect(await cairn.knowledge.readiness()).toEqual({ records: 40, vectors: 1, ready: false });
    embedder.mood = "well";
    expect(await run(records)).toMatchObject({ unchanged: 40, embeddingCalls: 39, embeddingCallsSaved: 1, embeddingPending: 0 });
    expect(await cairn.knowledge.readiness()).toEqual({ records: 40, vectors: 40, ready: true });
  });

  it("touches nothing that it does not own", async () => {
    const saved = await cairn.knowledge.save({ scope: "shared", id: "tmpl_001", kind: "faq", question: "mine", answer: "mine" });
    await expect(run(templates(5))).rejects.toMatchObject({ code: "conflict", message: expect.stringContaining("tmpl_001") });
    expect(await total()).toBe(1);
    await run(templates(5).slice(1));
    await cairn.knowledge.import({ ...place, source: "other", records: templates(9).slice(6) });
    expect(await run([])).toMatchObject({ removed: 4 });
    expect(await cairn.knowledge.get({ scope: "shared", id: saved.id })).toMatchObject({ question: "mine" });
    expect(await total()).toBe(4);
  });

  it("takes two imports of one source at once: one after the other, never half of each", async () => {
    const [one, two] = [templates(30), templates(30).map((record) => ({ ...record, answer: "Другой ответ." }))];
    await Promise.all([run(one), run(two)]);
    const { records } = await cairn.knowledge.list({ scope: "shared", limit: 100 });
    expect(records).toHaveLength(30);
    const others = records.filter(({ answer }) => answer === "Другой ответ.").length;
    expect([0, 30]).toContain(others);
  });
});

describe("importing", () => {
  it("leaves exactly the file's records, whatever was there, and nothing to do the second time", async () => {
    const record = fc.record({
      id: fc.constantFrom("a", "b", "c", "d", "e"),
      kind: fc.constantFrom("skill" as const, "remediation" as const, "faq" as const),
      category: fc.constantFrom("", "x"),
      subcategory: fc.constantFrom("", "y"),
      question: fc.constantFrom("one", "two 12"),
      answer: fc.constantFrom("yes", "no"),
    });
    const file = fc.uniqueArray(record, { selector: ({ id }) => id, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(file, fc.boolean()), { minLength: 1, maxLength: 4 }), async (imports) => {
        const embedder = testEmbedder();
        const cairn = await open({ storage: "memory", embedder: [embedder] });
        for (const [records, force] of imports) {
          const before = new Set((await cairn.knowledge.list({ scope: "shared", limit: 100 })).records.map(({ id }) => id));
          const reported = await cairn.knowledge.import({ ...place, records, force });
          expect(reported.added + reported.changed + reported.unchanged).toBe(records.length);
          expect(reported.removed).toBe([...before].filter((id) => !records.some((one) => one.id === id)).length);
          const stored = (await cairn.knowledge.list({ scope: "shared", limit: 100 })).records;
          const content = stored.map(({ id, kind, category, subcategory, question, answer }) => ({
            id,
            kind,
            category,
            subcategory,
            question,
            answer,
          }));
          const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);
          expect(content.sort(byId)).toEqual([...records].sort(byId));
          expect(await cairn.knowledge.readiness()).toEqual({ records: records.length, vectors: records.length, ready: true });
          const calls = embedder.calls;
          expect(await cairn.knowledge.import({ ...place, records })).toMatchObject({
            added: 0,
            changed: 0,
            removed: 0,
            embeddingCalls: 0,
          });
          expect(embedder.calls).toBe(calls);
        }
        await cairn.close();
      }),
      { numRuns: 60 },
    );
  });
});

describe("the records of a file", () => {
  const read = (content: string) => readRecords(content, undefined, "faq");

  it("are the same from JSON, JSON lines and CSV", async () => {
    const records = [
      { id: "1", kind: "faq", category: "a,b", subcategory: "", question: 'Say "hi"?', answer: "two\nlines" },
      { id: "2", kind: "skill", category: "", subcategory: "ё", question: "Как?", answer: "Так." },
    ] as const;
    const json = JSON.stringify(records);
    const lines = `${records.map((record) => JSON.stringify(record)).join("\r\n")}\n\n`;
    const csv =
      '\ufefftemplate_id,kind,category,subcategory,question_text,answer_text\r\n1,faq,"a,b",,"Say ""hi""?","two\nlines"\r\n2,skill,,ё,Как?,Так.';
    const semicolons = 'id;kind;category;subcategory;question;answer\n1;faq;a,b;"";"Say ""hi""?";"two\nlines"\n\n2;skill;;ё;Как?;Так.\n';
    for (const content of [json, lines, csv, semicolons]) expect(await read(content)).toEqual({ records, ignored: [] });
  });

  it("have an id made from the question where the file has none, and report which fields were not used", async () => {
    const { records, ignored } = await read('[{"question":"q","answer":"a","rating":5}]');
    expect(records[0]!.id).toMatch(/^q-[0-9a-f]{24}$/);
    expect((await read('[{"question":"q","answer":"b"}]')).records[0]!.id).toBe(records[0]!.id);
    expect(ignored).toEqual(["rating"]);
  });

  it.each([
    ['[{"id":"1","question":"q"}]', /^row 1: answer is missing.*Nothing was imported/],
    ['[{"question":"q","answer":"a"},{"question":"","answer":"a","kind":"wrong"}]', /row 2: question is missing|row 2: kind/],
    ['{"question":"q","answer":"a"}\n{"question"', /^line 2: is not valid JSON/],
    ["[1]", /^row 1: is not an object/],
    ['{"a":1', /^line 1: is not valid JSON/],
    ["id,question,answer\n1,q,a\n2,q", /^line 3: has 2 fields where the header has 3/],
    ['id,question,answer\n1,"q,a', /^line 2: a quote is not closed/],
    ['id,question,answer\n1,"q"x,a', /^line 2: text follows/],
    ['id,question,answer\n1,q"x,a', /^line 2: an unquoted field contains a quote/],
    ["id,id\n1,2", /^line 1: the column "id" is not unique/],
    ['id,question,answer\n1,"q\nq",a\n1,q,a', /^line 4: the id "1" is used by line 2/],
    [`id,question,answer\n1,q,${"a".repeat(20_001)}`, /^line 2: answer must have at most 20000/],
    ['[{"question":"q\\u0000","answer":"a"}]', /^row 1: question contains a NUL/],
  ])("are refused with the place of the fault: %j", async (content, message) => {
    await expect(read(content)).rejects.toThrowError(message);
  });

  it("come out of CSV as they went in", async () => {
    const cell = fc.oneof(fc.string(), fc.constantFrom('"', ",", "\n", "\r\n", '""', ";", " "), fc.string({ unit: "grapheme" }));
    const text = fc.array(cell, { minLength: 1, maxLength: 4 }).map((cells) => `x${cells.join("").replaceAll("\0", "")}`);
    const quote = (value: string) => `"${value.replaceAll('"', '""')}"`;
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(text, text), { maxLength: 5 }), async (pairs) => {
        const wellFormed = pairs.map(([q, a]) => [q.toWellFormed(), a.toWellFormed()] as const);
        const csv = ["id,question,answer", ...wellFormed.map(([q, a], index) => `${index},${quote(q)},${quote(a)}`)].join("\r\n");
        expect((await read(csv)).records.map(({ question, answer }) => [question, answer])).toEqual(wellFormed.map((pair) => [...pair]));
      }),
    );
  });

  it("name queries and the records that answer them, for a validation", async () => {
    expect(await readLabelled("query,template_id\nhow,1\n")).toEqual([{ query: "how", id: "1" }]);
    expect(await readLabelled('[{"question":"how","expected":"1"}]')).toEqual([{ query: "how", id: "1" }]);
    await expect(readLabelled("query\nhow\n")).rejects.toThrowError(/line 2: id is missing/);
  });
});
